import { useEffect, useState } from 'preact/hooks'

import { ErrorOf, Problem } from './feedback.tsx'
import { span } from './format.ts'
import type { Call } from './use-call.ts'

/** The time that a call has taken so far, with a button that gives it up, and its error. */
export function CallState<Result>({ call }: { readonly call: Call<Result> }) {
  const [, tick] = useState(0)
  useEffect(() => {
    if (call.since === undefined) return undefined
    const timer = setInterval(() => tick((turn) => turn + 1), 1_000)
    return () => clearInterval(timer)
  }, [call.since])
  return (
    <>
      <p role="status" class="call-state">
        {call.since !== undefined && 'Waiting for the answer.'}
      </p>
      {call.since !== undefined && (
        <p class="muted">
          {span(Math.floor((Date.now() - call.since) / 1_000) * 1_000)}{' '}
          <button type="button" class="quiet" onClick={call.cancel}>
            Cancel
          </button>
        </p>
      )}
      {call.error?.code === 'NO_ANSWER' ? (
        <Problem>The connection was lost. The server may have executed the call.</Problem>
      ) : (
        <ErrorOf error={call.error} />
      )}
    </>
  )
}
