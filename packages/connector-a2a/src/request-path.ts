import type { HttpRequest } from '@signalbox/http-kit'

function encodedPathOf({ url = '/' }: HttpRequest): string {
  const mark = url.indexOf('?')
  return mark === -1 ? url : url.slice(0, mark)
}

/** Returns the path of a request without its first segments, as the client sent it. */
export function encodedTail(request: HttpRequest, segments: number): string {
  return encodedPathOf(request)
    .split('/')
    .slice(segments + 1)
    .join('/')
}

/**
 * Returns the decoded path of a request. A path that cannot be decoded is returned unchanged and
 * matches no route.
 */
export function pathOf(request: HttpRequest): string {
  const path = encodedPathOf(request)
  if (!path.includes('%')) return path
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** The path of a call to an agent, below `/a2a/`. */
interface CallPath {
  readonly agentId: string
  /** True if the path ends in `/v0.3`: all calls are A2A 0.3. */
  readonly v03: boolean
}

const V03 = '/v0.3'

/**
 * Reads `{agent_id}` and `{agent_id}/v0.3`, with at most one slash after it, as some HTTP clients append one.
 * Undefined for any other path.
 * @param isNative True if official calls are served
 */
export function callPath(path: string, isNative: boolean): CallPath | undefined {
  if (!path.includes('/')) return { agentId: path, v03: false }
  const bare = path.endsWith('/') ? path.slice(0, -1) : path
  const v03 = bare.endsWith(V03)
  const agentId = v03 ? bare.slice(0, -V03.length) : bare
  return agentId === '' || agentId.includes('/') || (v03 && !isNative) ? undefined : { agentId, v03 }
}

const VERSION_PARAMETER = 'A2A-Version'

/** Returns the version of A2A that a request names in the header `A2A-Version` or in the query; empty if it names none. */
export function requestedVersion({ headers, url = '' }: Pick<HttpRequest, 'headers' | 'url'>): string {
  const header = headers['a2a-version']
  if (header !== undefined) return String(header).trim()
  const mark = url.indexOf('?')
  if (mark === -1) return ''
  return new URLSearchParams(url.slice(mark + 1)).get(VERSION_PARAMETER)?.trim() ?? ''
}
