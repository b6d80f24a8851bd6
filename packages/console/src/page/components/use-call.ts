import { useEffect, useRef, useState } from 'preact/hooks'

import type { ApiError } from '../api/client.ts'
import { toApiError } from '../api/use-data.ts'

/** A call that the operator starts, and can give up. */
export interface Call<Result> {
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
