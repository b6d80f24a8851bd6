import { context, propagation, ROOT_CONTEXT } from '@opentelemetry/api'

import type { ConnectOptions } from './connect.ts'

/**
 * Returns the options with which a client takes part in the traces of the program:
 * `connect(url, { ...openTelemetry() })`. Each request carries the active context, and each handler of a worker,
 * responder or agent runs in the context of its message. Has no effect unless the program has set up an OpenTelemetry
 * SDK with a context manager and a propagator.
 */
export function openTelemetry(): Required<Pick<ConnectOptions, 'traceHeaders' | 'runInTrace'>> {
  return {
    traceHeaders: () => {
      const headers: Record<string, string> = {}
      propagation.inject(context.active(), headers)
      return headers
    },
    runInTrace: (headers, run) => context.with(propagation.extract(ROOT_CONTEXT, headers), run),
  }
}
