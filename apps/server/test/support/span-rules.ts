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
  /** The attribute that distinguishes the spans of the rule, and its value. The first rule that matches applies. */
  readonly has: string
  readonly value?: string
  readonly kinds: readonly SpanKindName[]
  /** Returns the names that the attributes allow. An attribute that is missing is empty. */
  readonly names: (attribute: (name: string) => string) => readonly string[]
  /** The attributes, with spaces between them. */
  readonly required: string
  readonly optional: string
}

function messaging(operation: string, kinds: readonly SpanKindName[], more = ''): SpanRule {
  return {
    rule: operation,
    has: 'messaging.operation.name',
    value: operation,
    kinds,
    names: (attribute) => [operation, `${operation} ${attribute('messaging.destination.name')}`],
    required: 'messaging.system messaging.operation.name messaging.operation.type',
    optional: `messaging.destination.name messaging.destination.template messaging.batch.message_count error.type ${more}`,
  }
}

const NETWORK = 'client.address network.transport network.protocol.name'

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
    required: `mcp.protocol.version ${NETWORK}`,
    optional:
      'mcp.method.name gen_ai.tool.name gen_ai.operation.name jsonrpc.request.id rpc.response.status_code http.response.status_code error.type',
  },
  {
    rule: 'a2a',
    has: 'rpc.system.name',
    kinds: ['server'],
    names: (attribute) => [attribute('rpc.method') || 'POST'],
    required: `rpc.system.name ${NETWORK}`,
    optional: 'rpc.method rpc.response.status_code jsonrpc.request.id http.response.status_code error.type',
  },
  messaging('send', ['producer', 'client'], 'messaging.message.id signalbox.schedule.id'),
  messaging('receive', ['client']),
  messaging('process', ['consumer'], 'messaging.message.id'),
  messaging('ack', ['client']),
  messaging('nack', ['client']),
  messaging('extend', ['client']),
  {
    rule: 'invoke_agent',
    has: 'gen_ai.agent.id',
    kinds: ['client'],
    names: (attribute) => [`invoke_agent ${attribute('gen_ai.agent.name')}`],
    required: 'gen_ai.operation.name gen_ai.provider.name gen_ai.agent.id gen_ai.agent.name server.address server.port',
    optional: 'gen_ai.conversation.id http.response.status_code error.type',
  },
  {
    rule: 'webhook attempt',
    has: 'url.full',
    kinds: ['client'],
    names: () => ['POST'],
    required: 'http.request.method server.address server.port url.full',
    optional: 'http.request.resend_count http.response.status_code error.type',
  },
  {
    rule: 'http',
    has: 'http.request.method',
    kinds: ['server'],
    names: (attribute) => [`${attribute('http.request.method')} ${attribute('http.route')}`.trimEnd()],
    required: 'http.request.method url.scheme client.address network.protocol.name http.response.status_code',
    optional:
      'http.route url.path error.type network.transport cloudevents.event_id cloudevents.event_source cloudevents.event_type',
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
  const required = rule.required.split(' ')
  const known = new Set([...required, ...rule.optional.split(' ')])
  const names = rule.names((attribute) => textOf(attributes[attribute]))
  return [
    ...(rule.kinds.includes(kind) ? [] : [`a span of ${rule.rule} is ${rule.kinds.join(' or ')}`]),
    ...(names.includes(name) ? [] : [`the name must be ${names.join(' or ')}`]),
    ...required.filter((each) => attributes[each] === undefined).map((each) => `${each} is missing`),
    ...Object.keys(attributes)
      .filter((each) => !known.has(each))
      .map((each) => `${each} is no attribute of ${rule.rule}`),
    ...[attributes, ...links.map((link) => link.attributes)].flatMap(typeProblems),
    ...(span.end < span.start ? ['it ends before it starts'] : []),
    ...(span.status === 'error' && attributes['error.type'] === undefined ? ['an error without error.type'] : []),
  ]
}

function textOf(value: ExportedValue | undefined): string {
  return typeof value?.value === 'string' || typeof value?.value === 'number' ? String(value.value) : ''
}

function typeProblems(attributes: Readonly<Record<string, ExportedValue>>): readonly string[] {
  return Object.entries(attributes).flatMap(([name, value]) => {
    const [allowed, text] = [TYPES[name], textOf(value)]
    if (allowed === undefined || !REGISTERED.has(name)) return [`${name} is in no registry`]
    if (value.type !== (allowed === 'int' ? 'intValue' : 'stringValue')) return [`${name} is a ${value.type}`]
    if (typeof allowed !== 'string' && !allowed.includes(text)) return [`${name} is ${text}`]
    return text === '' || text.length > 256 ? [`${name} has ${text.length} characters`] : []
  })
}
