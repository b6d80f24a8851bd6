import type { Span, Tracing } from '@signalbox/broker-core'
import { creationParent, MAX_LINKS, serverAttributes } from '@signalbox/broker-core/internal'

import type { Item } from '../sources/source.ts'
import type { Attempt } from './attempt.ts'

/**
 * Begins the span of an attempt: in the trace of its message, or, for several messages, in a new trace with links to
 * theirs. Undefined if no message is recorded.
 * @param failed The number of attempts before this one
 */
export function attemptSpan(
  tracing: Tracing,
  items: readonly Item[],
  endpoint: string,
  failed: number,
): Span | undefined {
  const parents = items.slice(0, MAX_LINKS).flatMap(({ message }) => creationParent(message) ?? [])
  const [parent] = parents
  if (parent === undefined) return undefined
  const url = new URL(endpoint)
  const start = {
    name: 'POST',
    kind: 'client',
    attributes: {
      'http.request.method': 'POST',
      ...serverAttributes(url),
      // The path of a webhook is often its secret.
      'url.full': `${url.origin}/REDACTED`,
      'http.request.resend_count': failed === 0 ? undefined : failed,
    },
  } as const
  if (items.length === 1) return tracing.begin(start, parent)
  return tracing.begin({ ...start, links: parents.map(({ context }) => ({ context })) })
}

/** Ends the span of an attempt. */
export function endAttempt(span: Span, { verdict, status }: Attempt): void {
  if (status !== undefined) span.set({ 'http.response.status_code': status })
  if (verdict !== 'delivered') span.fail(status === undefined ? 'no_answer' : String(status))
  span.end()
}
