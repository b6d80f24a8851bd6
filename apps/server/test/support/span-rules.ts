import { readFileSync } from 'node:fs'

import * as conventions from '@opentelemetry/semantic-conventions/incubating'
import type { ExportedSpan, ExportedValue, SpanKindName } from '@signalbox/testkit/otlp-receiver'
import { parse } from 'yaml'

/** The type of each attribute, as the conventions define it. A list has the allowed values. */
const TYPES: Readonly<Record<string, 'string' | 'int' | readonly string[]>> = {
  'client.address': 'string',
  'cloudevents.event_id': 'string',
  'cloudevents.event_source': 'string',
  'cloudevents.event_type': 'string',
  'error.type': 'string',
  'gen_ai.agent.id': 'string',
  'gen_ai.agent.name': 'string',
  'gen_ai.conversation.id': 'string',
  'gen_ai.operation.name': ['execute_tool', 'invoke_agent'],
  'gen_ai.provider.name': ['a2a'],
  'gen_ai.tool.name': 'string',
  'http.request.method': 'string',
  'http.request.resend_count': 'int',
  'http.response.status_code': 'int',
  'http.route': 'string',
  'jsonrpc.request.id': 'string',
  'mcp.method.name': 'string',
  'mcp.protocol.version': 'string',
  'messaging.batch.message_count': 'int',
  'messaging.destination.name': 'string',
  'messaging.destination.template': 'string',
  'messaging.message.id': 'string',
  'messaging.operation.name': ['send', 'receive', 'process', 'ack', 'nack', 'extend'],
  'messaging.operation.type': ['send', 'receive', 'process', 'settle'],
  'messaging.system': ['signalbox'],
  'network.protocol.name': ['http'],
  'network.transport': ['tcp'],
  'rpc.method': 'string',
  'rpc.response.status_code': 'string',
  'rpc.system.name': ['jsonrpc'],
  'server.address': 'string',
  'server.port': 'int',
  'signalbox.schedule.id': 'string',
  'url.full': 'string',
  'url.path': 'string',
  'url.scheme': ['http', 'https'],
}

interface SpanRule {
  readonly rule: string
  /** The attribute that distinguishes the spans of the rule. The first rule that matches applies. */
  readonly has: string
  readonly value?: string
  readonly kinds: readonly SpanKindName[]
  /** The names that the attributes allow. */
  readonly names: (attribute: (name: string) => string) => readonly string[]
  readonly required: readonly string[]
  readonly optional: readonly string[]
}

const MESSAGING = ['messaging.system', 'messaging.operation.name', 'messaging.operation.type']
const DESTINATION = ['messaging.destination.name', 'messaging.destination.template']

function messaging(operation: string, kinds: readonly SpanKindName[], optional: readonly string[]): SpanRule {
  return {
    rule: operation,
    has: 'messaging.operation.name',
    value: operation,
    kinds,
    names: (attribute) => [operation, `${operation} ${attribute('messaging.destination.name')}`],
    required: MESSAGING,
    optional: [...DESTINATION, 'error.type', 'messaging.batch.message_count', ...optional],
  }
}

const RULES: readonly SpanRule[] = [
  {
    rule: 'mcp',
    has: 'mcp.protocol.version',
    kinds: ['server'],
    names: (attribute) => {
      const [method, tool] = [attribute('mcp.method.name'), attribute('gen_ai.tool.name')]
      if (method === '') return ['GET', 'POST', 'DELETE']
      return [tool === '' ? method : `${method} ${tool}`]
    },
    required: ['mcp.protocol.version', 'network.transport', 'network.protocol.name', 'client.address'],
    optional: [
      ...['mcp.method.name', 'gen_ai.tool.name', 'gen_ai.operation.name', 'jsonrpc.request.id'],
      ...['rpc.response.status_code', 'error.type', 'http.response.status_code'],
    ],
  },
  {
    rule: 'a2a',
    has: 'rpc.system.name',
    kinds: ['server'],
    names: (attribute) => [attribute('rpc.method') || 'POST'],
    required: ['rpc.system.name', 'client.address'],
    optional: [
      ...['rpc.method', 'rpc.response.status_code', 'jsonrpc.request.id', 'error.type'],
      ...['network.transport', 'network.protocol.name', 'http.response.status_code'],
    ],
  },
  messaging('send', ['producer', 'client'], ['messaging.message.id', 'signalbox.schedule.id']),
  messaging('receive', ['client'], []),
  messaging('process', ['consumer'], ['messaging.message.id']),
  messaging('ack', ['client'], []),
  messaging('nack', ['client'], []),
  messaging('extend', ['client'], []),
  {
    rule: 'invoke_agent',
    has: 'gen_ai.agent.id',
    kinds: ['client'],
    names: (attribute) => [`invoke_agent ${attribute('gen_ai.agent.name')}`],
    required: ['gen_ai.operation.name', 'gen_ai.provider.name', 'gen_ai.agent.id', 'server.address', 'server.port'],
    optional: ['gen_ai.agent.name', 'gen_ai.conversation.id', 'http.response.status_code', 'error.type'],
  },
  {
    rule: 'webhook attempt',
    has: 'url.full',
    kinds: ['client'],
    names: () => ['POST'],
    required: ['http.request.method', 'server.address', 'server.port', 'url.full'],
    optional: ['http.request.resend_count', 'http.response.status_code', 'error.type'],
  },
  {
    rule: 'http',
    has: 'http.request.method',
    kinds: ['server'],
    names: (attribute) => [`${attribute('http.request.method')} ${attribute('http.route')}`.trimEnd()],
    required: ['http.request.method', 'url.scheme', 'client.address', 'http.response.status_code'],
    optional: [
      ...['http.route', 'url.path', 'network.protocol.name', 'error.type'],
      ...['cloudevents.event_id', 'cloudevents.event_source', 'cloudevents.event_type'],
    ],
  },
]

const OWN = parse(
  readFileSync(new URL('../../../../tools/telemetry/registry/signalbox.yaml', import.meta.url), 'utf8'),
) as { readonly groups: readonly { readonly attributes: readonly { readonly id: string }[] }[] }

/** The attributes of the pinned conventions, and those of this project. */
const REGISTERED: ReadonlySet<unknown> = new Set([
  ...Object.entries(conventions).flatMap(([name, value]) => (name.startsWith('ATTR_') ? [value] : [])),
  ...OWN.groups.flatMap(({ attributes }) => attributes.map(({ id }) => id)),
])

/** Returns a line for each difference between the spans of the server and the rules. */
export function violations(spans: readonly ExportedSpan[]): readonly string[] {
  return spans
    .filter(({ service }) => service === 'signalbox')
    .flatMap((span) => problemsOf(span).map((problem) => `${span.kind} ${span.name}: ${problem}`))
}

function problemsOf(span: ExportedSpan): readonly string[] {
  const { attributes, kind, links, name } = span
  const rule = RULES.find(
    ({ has, value }) => attributes[has] !== undefined && (value === undefined || attributes[has]?.value === value),
  )
  if (rule === undefined) return ['no rule has these attributes']
  const known = new Set([...rule.required, ...rule.optional])
  const names = rule.names((attribute) => String(attributes[attribute]?.value ?? ''))
  return [
    ...(rule.kinds.includes(kind) ? [] : [`a span of ${rule.rule} is ${rule.kinds.join(' or ')}`]),
    ...(names.includes(name) ? [] : [`the name must be ${names.join(' or ')}`]),
    ...rule.required.filter((each) => attributes[each] === undefined).map((each) => `${each} is missing`),
    ...Object.keys(attributes)
      .filter((each) => !known.has(each))
      .map((each) => `${each} is no attribute of ${rule.rule}`),
    ...[attributes, ...links.map((link) => link.attributes)].flatMap(typeProblems),
    ...(span.end < span.start ? ['it ends before it starts'] : []),
    ...(span.status === 'error' && attributes['error.type'] === undefined ? ['an error without error.type'] : []),
  ]
}

function typeProblems(attributes: Readonly<Record<string, ExportedValue>>): readonly string[] {
  return Object.entries(attributes).flatMap(([name, { type, value }]) => {
    const allowed = TYPES[name]
    if (allowed === undefined || !REGISTERED.has(name)) return [`${name} is in no registry`]
    if (type !== (allowed === 'int' ? 'intValue' : 'stringValue')) return [`${name} is a ${type}`]
    if (typeof allowed !== 'string' && !allowed.includes(String(value))) return [`${name} is ${String(value)}`]
    return value === '' || String(value).length > 256 ? [`${name} has ${String(value).length} characters`] : []
  })
}
