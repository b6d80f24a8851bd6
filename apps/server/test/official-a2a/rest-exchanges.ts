import type { Exchange } from './exchange.ts'
import { RESULTS_10, SCHEMA_10 } from './strict/schema-1.0.ts'
import { problems } from './strict/validate.ts'

/** The resources of the HTTP+JSON binding, and the JSON-RPC method that each means. */
const RESOURCES: readonly (readonly [RegExp, string])[] = [
  [/^POST .*\/message:send$/, 'SendMessage'],
  [/^POST .*\/message:stream$/, 'SendStreamingMessage'],
  [/^POST .*\/tasks\/[^/]+:cancel$/, 'CancelTask'],
  [/^(?:GET|POST) .*\/tasks\/[^/]+:subscribe$/, 'SubscribeToTask'],
  [/^GET .*\/tasks$/, 'ListTasks'],
  [/^GET .*\/tasks\/[^/]+$/, 'GetTask'],
  [/^POST .*\/pushNotificationConfigs$/, 'CreateTaskPushNotificationConfig'],
  [/^GET .*\/pushNotificationConfigs$/, 'ListTaskPushNotificationConfigs'],
  [/^GET .*\/pushNotificationConfigs\/[^/]+$/, 'GetTaskPushNotificationConfig'],
  [/^DELETE .*\/pushNotificationConfigs\/[^/]+$/, 'DeleteTaskPushNotificationConfig'],
  [/^GET .*\/extendedAgentCard$/, 'GetExtendedAgentCard'],
]

/** Returns the method that a request of the HTTP+JSON binding means; undefined for a request of JSON-RPC. */
export function restMethod({ method, url }: Exchange): string | undefined {
  const target = `${method} ${new URL(url).pathname}`
  return RESOURCES.find(([path]) => path.test(target))?.[1]
}

/** Returns what readers that are stricter than the SDK for JavaScript would refuse in an answer. */
export async function restProblems(
  method: string,
  { status, contentType, answer }: Exchange,
): Promise<readonly string[]> {
  let text: string
  try {
    text = await answer
  } catch {
    return []
  }
  // The SDK for Go takes every other status for an error.
  if (status !== 200) return [...(status < 400 ? [`HTTP ${status}`] : []), ...statusProblems(text, status)]
  if (!contentType.startsWith('text/event-stream')) return resultProblems(method, JSON.parse(text))
  const frames = text.split('\n\n')
  const found = frames.pop() === '' ? [] : ['the last frame is not complete']
  for (const frame of frames) {
    if (frame.startsWith(':')) continue
    const [, event, data] = /^(event: error\n)?data: ([^\r\n]*)$/.exec(frame) ?? []
    if (data === undefined) found.push(`not one line of data: ${frame}`)
    else if (event === undefined) found.push(...resultProblems(method, JSON.parse(data)))
    else found.push(...statusProblems(data))
  }
  return found
}

function resultProblems(method: string, result: unknown): readonly string[] {
  const type = RESULTS_10[method]
  if (type !== undefined) return problems(SCHEMA_10, type, result)
  return JSON.stringify(result) === '{}' ? [] : [`${method} answers ${JSON.stringify(result)}`]
}

/** The members of a google.rpc.Status, whose details name the reason. */
function statusProblems(text: string, httpStatus?: number): readonly string[] {
  const { error, ...others } = JSON.parse(text) as { readonly error: Readonly<Record<string, unknown>> }
  const { code, status, message, details, ...more } = error
  const found = Object.keys({ ...others, ...more }).map((name) => `${name} is unknown`)
  if (httpStatus !== undefined && code !== httpStatus) found.push(`error.code is ${String(code)}`)
  if (typeof status !== 'string' || !/^[A-Z_]+$/.test(status)) found.push(`error.status is ${String(status)}`)
  if (typeof message !== 'string') found.push('error.message is not a string')
  const infos = (details as readonly Readonly<Record<string, unknown>>[]).filter((detail) =>
    String(detail['@type']).endsWith('/google.rpc.ErrorInfo'),
  )
  if (infos.length !== 1) found.push(`${infos.length} reasons`)
  return found
}
