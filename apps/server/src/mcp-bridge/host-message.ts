/** A JSON-RPC message of the host. */
export interface HostMessage {
  /** The message as JSON. */
  readonly text: string
  readonly method: string | undefined
  /** The id of a request. `undefined` for other messages. */
  readonly id: string | number | undefined
  readonly params: Readonly<Record<string, unknown>> | undefined
  /** The revision that the message names in `_meta`, from 2026-07-28 on; `undefined` for an older revision. */
  readonly revision: string | undefined
}

const REVISION = 'io.modelcontextprotocol/protocolVersion'

/** Returns the message in a line; `undefined` if the line is not JSON. */
export function readHostMessage(text: string): HostMessage | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  const { method, id, params } = isObject(value) ? value : {}
  const isRequest = typeof method === 'string' && (typeof id === 'string' || typeof id === 'number')
  const meta = isObject(params) ? params['_meta'] : undefined
  const revision = isObject(meta) ? meta[REVISION] : undefined
  return {
    text,
    method: typeof method === 'string' ? method : undefined,
    id: isRequest ? id : undefined,
    params: isObject(params) ? params : undefined,
    revision: typeof revision === 'string' ? revision : undefined,
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
