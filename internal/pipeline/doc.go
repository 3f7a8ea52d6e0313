// Package pipeline runs the pipeline of a CompositionRevision as Crossplane v2.4 does.
//
// A pipeline is a list of steps. Each step calls one function with the observed state, and
// with the desired state and the context that the previous step returned:
//
//   - The desired state is empty before the first step. The caller sets the first context
//     (Crossplane starts with an empty context).
//   - A step is called again until two answers in a row require the same resources and
//     schemas: a first call and at most 5 iterations. If the first request already contained
//     everything that its answer requires, one call is enough. The context of an answer is
//     passed to the next call, its desired state is not.
//   - The first request of a step contains its bootstrap requirements
//     (spec.pipeline[].requirements) and, as far as they can be read, the requirements of the
//     last successful run.
//   - A fatal result ends the run with a [FatalError].
//
// Four differences save calls and copies. A function whose answer depends only on its request
// returns the same final answer with them:
//
//   - A step may run in this process ([Options.Local]) instead of behind gRPC.
//   - The first request also contains the schemas of the last run, not only its resources.
//   - A run reads each selector once. All steps see the same resources, just as they see the
//     same observed state.
//   - A failed run still returns its conditions, results and requirements, so that the caller
//     can watch the required resources.
//
// Files, bottom to top: step (a decoded revision), snapshot (the reads of a run), memory
// (the requirements of the last run), request, requirements (the loop around one step),
// runner. [Functions], [ClusterResources] and [OpenAPISchemas] connect a [Runner] to a
// cluster.
//
// Memory of the process: the requirements of the last run of 8192 composites, the steps of
// the revisions in a [StepCache], one connection per function, 256 schemas. A restart loses
// all of it and costs one more call per step, one handshake per function and one download
// per schema. No decision depends on it.
package pipeline
