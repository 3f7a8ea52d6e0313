package v1alpha1

import "slices"

// IsExhausted reports whether the error means that there is no room for a VM. Such an error ends
// when other VMs are deleted, and another failure domain may have room now.
func (c ErrorCode) IsExhausted() bool {
	return c == ErrorQuotaExceeded || c == ErrorCapacityExhausted
}

// NeedsSomebody reports whether the error lasts until a user changes the class, an object that the
// class names, or the credentials.
func (c ErrorCode) NeedsSomebody() bool {
	return c == ErrorInvalidRequest || c == ErrorPermissionDenied || c == ErrorProviderConfigNotFound
}

// ErrorCodes returns all declared classes of errors.
func ErrorCodes() []ErrorCode {
	return []ErrorCode{ErrorQuotaExceeded, ErrorCapacityExhausted, ErrorInvalidRequest, ErrorPermissionDenied, ErrorProviderConfigNotFound, ErrorThrottled, ErrorTransient}
}

// IsKnown reports whether the class is one of ErrorCodes.
func (c ErrorCode) IsKnown() bool { return slices.Contains(ErrorCodes(), c) }
