/** The path of a call to an agent, below `/a2a/`. */
export interface CallPath {
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
