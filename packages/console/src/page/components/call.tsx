import { useEffect, useRef, useState } from 'preact/hooks'

import type { ApiError } from '../api/client.ts'
import { toApiError } from '../api/use-data.ts'
import { ErrorOf, Problem } from './page.tsx'
import { span } from './values.tsx'

/** A call that the operator starts, and can give up. */
interface Call<Result> {
  readonly result: Result | undefined
  readonly error: ApiError | undefined
  /** The start of a call that runs, in ms since the epoch. */
  readonly since: number | undefined
  readonly start: (run: (signal: AbortSignal) => Promise<Result>) => void
  readonly cancel: () => void
}

interface State<Result> {
  readonly result?: Result
  readonly error?: ApiError
  readonly since?: number
}

/** Runs one call at a time, and aborts it when the operator leaves the screen. */
export function useCall<Result>(): Call<Result> {
  const [state, setState] = useState<State<Result>>({})
  const running = useRef<AbortController>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const start = (run: (signal: AbortSignal) => Promise<Result>): void => {
    running.current?.abort()
    const ended = new AbortController()
    running.current = ended
    setState({ since: Date.now() })
    run(ended.signal).then(
      (result) => {
        if (!ended.signal.aborted) setState({ result })
      },
      (error: unknown) => {
        if (!ended.signal.aborted) setState({ error: toApiError(error) })
      },
    )
  }
  const cancel = (): void => {
    running.current?.abort()
    setState({})
  }
  return { result: state.result, error: state.error, since: state.since, start, cancel }
}

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
      <CallError call={call} lost="The connection was lost. The server may have executed the call." />
    </>
  )
}

interface CallErrorProps {
  readonly call: { readonly error: ApiError | undefined }
  /** What the operator must know after a lost connection, which may have hidden a success. @default nothing */
  readonly lost?: string | undefined
}

/** The error of a call. The banner of the page reports a lost connection; only what it means for the call is said here. */
export function CallError({ call: { error }, lost }: CallErrorProps) {
  if (lost !== undefined && error?.code === 'NO_ANSWER') return <Problem>{lost}</Problem>
  return <ErrorOf error={error} />
}
