import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

import { token } from '../session/token.ts'
import { ApiError, get } from './client.ts'
import type { GetData, GetPath, GetQuery } from './client.ts'
import { useStore } from './store.ts'

/** The data of a route on a screen. */
export interface Loaded<T> {
  /** The last answer. It stays while a newer one is read, and while the connection is lost. */
  readonly data: T | undefined
  /** The error of the last request; undefined after a success. */
  readonly error: ApiError | undefined
  /** `true` until the first answer for the present parameters. */
  readonly loading: boolean
  /** Reads again now. */
  readonly refresh: () => void
}

/** The time between two attempts while the server does not answer, in ms. */
const RETRY_MS = 2_000

/**
 * Reads data at once, again when `key` changes, and then at an interval while the page is visible.
 * @param key The parameters of the request as text; a request for other parameters is aborted
 * @param everyMs 0 reads only once
 */
export function useData<T>(key: string, load: (signal: AbortSignal) => Promise<T>, everyMs = 0): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: ApiError }>({ key: '' })
  const [turn, setTurn] = useState(0)
  const bearer = useStore(token)
  const latest = useRef(load)
  latest.current = load
  useEffect(() => {
    const ended = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const again = (ms: number): void => {
      if (ms > 0 && !ended.signal.aborted) timer = setTimeout(run, ms)
    }
    const run = async (): Promise<void> => {
      if (document.hidden) return again(everyMs)
      try {
        const data = await latest.current(ended.signal)
        if (ended.signal.aborted) return
        setState({ key, data })
        again(everyMs)
      } catch (cause) {
        if (ended.signal.aborted) return
        const error = toApiError(cause)
        setState((last) => (last.key === key ? { ...last, key, error } : { key, error }))
        again(isTemporary(error) ? RETRY_MS : everyMs)
      }
    }
    void run()
    const shown = (): void => {
      if (document.hidden || everyMs === 0) return
      clearTimeout(timer)
      void run()
    }
    document.addEventListener('visibilitychange', shown)
    return () => {
      ended.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', shown)
    }
  }, [key, everyMs, bearer, turn])
  const refresh = useCallback(() => setTurn((count) => count + 1), [])
  const current = state.key === key
  return {
    data: current ? state.data : undefined,
    error: current ? state.error : undefined,
    loading: !current || (state.data === undefined && state.error === undefined),
    refresh,
  }
}

function isTemporary({ code }: ApiError): boolean {
  return code === 'NO_ANSWER' || code === 'NOT_READY'
}

/** Converts what a request rejected with. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return new ApiError('FAILED', error instanceof Error ? error.message : String(error), 0, { cause: error })
}

/**
 * Reads a route as {@link useData} does, again when a parameter changes.
 * @param turn Changes when the data may have changed: it is read again at once
 */
export function useRoute<Path extends GetPath>(
  path: Path,
  query: GetQuery<Path>,
  everyMs = 0,
  turn = 0,
): Loaded<GetData<Path>> {
  return useData(`${path} ${JSON.stringify(query)} ${turn}`, (signal) => get(path, query, signal), everyMs)
}
