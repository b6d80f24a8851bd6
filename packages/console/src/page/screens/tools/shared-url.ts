import { get } from '../../api/client.ts'

/** Returns the address of `/mcp` as the operator's browser would reach it, by the settings of the server. */
export async function readSharedUrl(signal: AbortSignal): Promise<string> {
  const { items } = await get('/api/settings', {}, signal)
  const { shared } = await get('/api/security', {}, signal)
  const port = items.find(({ key }) => key === 'http.port')?.value
  const scheme = shared.tls ? 'https' : 'http'
  return `${scheme}://${location.hostname}:${typeof port === 'number' ? port : 9090}/mcp`
}
