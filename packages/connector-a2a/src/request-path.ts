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
