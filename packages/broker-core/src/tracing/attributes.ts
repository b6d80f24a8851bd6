/**
 * The attributes that a span may have, with their types, by the names of the OpenTelemetry semantic conventions. Others
 * are dropped, also if a program passes them without types: nothing of a message's content is recorded.
 */
export const ATTRIBUTES = {
  'client.address': 'string',
  'cloudevents.event_id': 'string',
  'cloudevents.event_source': 'string',
  'cloudevents.event_type': 'string',
  'error.type': 'string',
  'gen_ai.agent.id': 'string',
  'gen_ai.agent.name': 'string',
  'gen_ai.conversation.id': 'string',
  'gen_ai.operation.name': 'string',
  'gen_ai.provider.name': 'string',
  'gen_ai.tool.name': 'string',
  'http.request.method': 'string',
  'http.request.resend_count': 'number',
  'http.response.status_code': 'number',
  'http.route': 'string',
  'jsonrpc.request.id': 'string',
  'mcp.method.name': 'string',
  'mcp.protocol.version': 'string',
  'messaging.batch.message_count': 'number',
  'messaging.destination.name': 'string',
  'messaging.destination.template': 'string',
  'messaging.message.id': 'string',
  'messaging.operation.name': 'string',
  'messaging.operation.type': 'string',
  'messaging.system': 'string',
  'network.protocol.name': 'string',
  'network.transport': 'string',
  'rpc.method': 'string',
  'rpc.response.status_code': 'string',
  'rpc.system.name': 'string',
  'server.address': 'string',
  'server.port': 'number',
  'signalbox.schedule.id': 'string',
  'url.full': 'string',
  'url.path': 'string',
  'url.scheme': 'string',
} as const

type AttributeTypes = typeof ATTRIBUTES

/** The attributes of a span. */
export type SpanAttributes = {
  readonly [Name in keyof AttributeTypes]?: (AttributeTypes[Name] extends 'number' ? number : string) | undefined
}

/** The longest text of an attribute, in characters. Longer ones are cut. */
export const MAX_ATTRIBUTE_CHARACTERS = 256

/** Returns the attributes of the server at a URL of http or https. */
export function serverAttributes({ hostname, port, protocol }: URL): SpanAttributes {
  const byDefault = protocol === 'https:' ? 443 : 80
  return { 'server.address': hostname, 'server.port': port === '' ? byDefault : Number(port) }
}
