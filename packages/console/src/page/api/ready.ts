import type { paths } from './management.d.ts'
import { routeUrl } from './client.ts'

type Readiness = paths['/ready']['get']['responses'][200]['content']['application/json']

/** Reads the probe `/ready`, whose checks say why a node is not ready. It has another form than the API. */
export async function readReadiness(signal: AbortSignal): Promise<Readiness> {
  const response = await fetch(routeUrl('/ready'), { signal, credentials: 'omit', cache: 'no-store' })
  return response.json()
}
