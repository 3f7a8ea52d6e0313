package v1alpha1

import "slices"

// IsExhausted says whether the error means that there is no room for a VM. It passes
// when others give theirs back, and another failure domain may have some now.
func (c ErrorCode) IsExhausted() bool {
	return c == ErrorQuotaExceeded || c == ErrorCapacityExhausted
}

// NeedsSomebody says whether the error stays until somebody changes the class, what
// it names, or the credentials.
func (c ErrorCode) NeedsSomebody() bool {
	return c == ErrorInvalidRequest || c == ErrorPermissionDenied
}

// ErrorCodes are the classes that are declared.
func ErrorCodes() []ErrorCode {
	return []ErrorCode{ErrorQuotaExceeded, ErrorCapacityExhausted, ErrorInvalidRequest, ErrorPermissionDenied, ErrorThrottled, ErrorTransient}
}

// IsKnown reports whether it is one of the classes that are declared.
func (c ErrorCode) IsKnown() bool { return slices.Contains(ErrorCodes(), c) }
