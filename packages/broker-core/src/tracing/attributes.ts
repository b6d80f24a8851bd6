/** The type of each attribute that a span may have. There are no others: nothing of a message's content is recorded. */
interface AttributeTypes {
  'client.address': string
  'cloudevents.event_id': string
  'cloudevents.event_source': string
  'cloudevents.event_type': string
  'error.type': string
  'gen_ai.agent.id': string
  'gen_ai.agent.name': string
  'gen_ai.conversation.id': string
  'gen_ai.operation.name': 'execute_tool' | 'invoke_agent'
  'gen_ai.provider.name': string
  'gen_ai.tool.name': string
  'http.request.method': string
  'http.request.resend_count': number
  'http.response.status_code': number
  'http.route': string
  'jsonrpc.request.id': string
  'mcp.method.name': string
  'mcp.protocol.version': string
  'messaging.batch.message_count': number
  'messaging.destination.name': string
  'messaging.destination.template': string
  'messaging.message.id': string
  'messaging.operation.name': string
  'messaging.operation.type': 'send' | 'receive' | 'process' | 'settle'
  'messaging.system': 'signalbox'
  'network.protocol.name': 'http'
  'network.transport': 'tcp'
  'rpc.method': string
  'rpc.response.status_code': string
  'rpc.system.name': 'jsonrpc'
  'server.address': string
  'server.port': number
  'signalbox.schedule.id': string
  'url.full': string
  'url.path': string
  'url.scheme': 'http' | 'https'
}

/** The attributes of a span, by the names of the OpenTelemetry semantic conventions. */
export type SpanAttributes = { readonly [Name in keyof AttributeTypes]?: AttributeTypes[Name] | undefined }

/** The attributes that are recorded. Others are dropped, also if a program passes them without types. */
export const RECORDED_ATTRIBUTES: Readonly<Record<keyof AttributeTypes, true>> = {
  'client.address': true,
  'cloudevents.event_id': true,
  'cloudevents.event_source': true,
  'cloudevents.event_type': true,
  'error.type': true,
  'gen_ai.agent.id': true,
  'gen_ai.agent.name': true,
  'gen_ai.conversation.id': true,
  'gen_ai.operation.name': true,
  'gen_ai.provider.name': true,
  'gen_ai.tool.name': true,
  'http.request.method': true,
  'http.request.resend_count': true,
  'http.response.status_code': true,
  'http.route': true,
  'jsonrpc.request.id': true,
  'mcp.method.name': true,
  'mcp.protocol.version': true,
  'messaging.batch.message_count': true,
  'messaging.destination.name': true,
  'messaging.destination.template': true,
  'messaging.message.id': true,
  'messaging.operation.name': true,
  'messaging.operation.type': true,
  'messaging.system': true,
  'network.protocol.name': true,
  'network.transport': true,
  'rpc.method': true,
  'rpc.response.status_code': true,
  'rpc.system.name': true,
  'server.address': true,
  'server.port': true,
  'signalbox.schedule.id': true,
  'url.full': true,
  'url.path': true,
  'url.scheme': true,
}

/** The longest text of an attribute, in characters. Longer ones are cut. */
export const MAX_ATTRIBUTE_CHARACTERS = 256
