import type { CommandCall } from './command.ts'
import { connectManagement } from './connection.ts'
import type { ExitCode } from './errors.ts'
import { EXIT } from './errors.ts'
import type { JsonObject } from './json.ts'
import { isObject, numberOf, objectsOf, toText } from './json.ts'
import type { ManagementClient } from './management-client.ts'
import { shown, styles, table } from './output.ts'

/** A list of the statistics: its route, and the fields of its entries that people see. */
interface List {
  readonly path: string
  /** The parameter that `--filter` sets. */
  readonly filter?: string
  readonly fields: readonly string[]
}

const FLOW = ['messages_in', 'messages_out', 'errors']

const LISTS: Readonly<Record<string, List>> = {
  queues: {
    path: '/api/stats/queues',
    filter: 'channel',
    fields: ['name', 'waiting', 'delayed', 'in_flight', 'dead_lettered', 'expired', ...FLOW],
  },
  channels: { path: '/api/stats/channels', filter: 'channel', fields: ['name', 'type', 'subscribers', ...FLOW] },
  stores: {
    path: '/api/stats/events_stores',
    filter: 'channel',
    fields: ['name', 'entries', 'first_sequence', 'last_sequence', ...FLOW],
  },
  clients: { path: '/api/stats/clients', filter: 'client', fields: ['client_id', ...FLOW] },
  agents: { path: '/api/agents', fields: ['agent_id', 'name', 'is_alive', 'in_flight', 'last_seen'] },
}

/** The most entries of a page. */
const PAGE = 1000

/** `signalbox stats`: prints totals, or one list. */
export async function statsCommand(call: CommandCall): Promise<ExitCode> {
  const { line } = call
  const word = line.word(0)
  const list = Object.hasOwn(LISTS, word) ? LISTS[word] : undefined
  if (word !== '' && list === undefined) throw line.invalid('the list', word, Object.keys(LISTS).join(', '))
  const filter = line.value('filter')
  if (filter !== undefined && list?.filter === undefined)
    throw line.invalid('--filter', filter, 'a filter of a list, except agents')
  const max = line.whole('max', 1, PAGE) ?? PAGE
  const api = await connectManagement(call)
  return list === undefined ? printSnapshot(call, api) : printList(call, api, list, max)
}

async function printList(
  { line, io }: CommandCall,
  api: ManagementClient,
  { path, filter, fields }: List,
  max: number,
): Promise<ExitCode> {
  const query = { limit: max, ...(filter === undefined ? {} : { [filter]: line.value('filter') }) }
  const page = await api.get(path, query)
  const items = objectsOf(page['items'])
  await printItems({ line, io }, items, fields)
  if (page['next_cursor'] !== null) await io.stderr.write('signalbox stats: there are more; use --filter or --max\n')
  return items.length === 0 ? EXIT.NOTHING : EXIT.OK
}

/** Prints objects: with `--json` one a line, otherwise the fields as a table. */
async function printItems(
  { line, io }: Pick<CommandCall, 'io' | 'line'>,
  items: readonly JsonObject[],
  fields: readonly string[],
): Promise<void> {
  if (line.has('json')) {
    for (const item of items) await io.stdout.write(`${JSON.stringify(item)}\n`)
  } else if (items.length > 0) {
    const style = styles(io, io.stdout)
    const rows = items.map((item) => fields.map((field) => cell(item[field], io.stdout)))
    for (const [i, row] of table([fields.map((field) => field.replaceAll('_', ' ')), ...rows]).entries()) {
      await io.stdout.write(`${i === 0 ? style('bold', row) : row}\n`)
    }
  }
}

/** The most nodes of each column that the map of a server has. The others are one node. */
const MAP_NODES = 200

/** `signalbox map`: prints the busiest connections. */
export async function mapCommand(call: CommandCall): Promise<ExitCode> {
  const { line, io } = call
  const window = line.value('window') ?? 'minute'
  if (window !== 'minute' && window !== 'hour') throw line.invalid('--window', window, 'minute or hour')
  const max = line.whole('max', 1, PAGE) ?? PAGE
  const api = await connectManagement(call)
  const map = await api.get('/api/map', { window, nodes: MAP_NODES, search: line.value('filter') })
  const edges = objectsOf(map['edges'])
  const seconds = numberOf(map['seconds'])
  const items = edges.slice(0, max).map((edge) => {
    const { from, to, messages, errors, latency_seconds: latency } = edge
    return {
      from,
      to,
      messages,
      errors,
      per_second: Number((numberOf(messages) / seconds).toPrecision(3)),
      latency_ms: typeof latency === 'number' ? Number((latency * 1_000).toPrecision(3)) : null,
    }
  })
  await printItems(call, items, ['from', 'to', 'messages', 'per_second', 'errors', 'latency_ms'])
  if (edges.length > max) await io.stderr.write('signalbox map: there are more; use --filter or --max\n')
  return items.length === 0 ? EXIT.NOTHING : EXIT.OK
}

async function printSnapshot({ line, io }: CommandCall, api: ManagementClient): Promise<ExitCode> {
  const snapshot = await api.get('/api/snapshot')
  if (line.has('json')) {
    await io.stdout.write(`${JSON.stringify(snapshot)}\n`)
    return EXIT.OK
  }
  const part = (name: string): JsonObject => (isObject(snapshot[name]) ? snapshot[name] : {})
  const node: JsonObject = objectsOf(snapshot['nodes'])[0] ?? {}
  const { waiting, delayed, in_flight: inFlight } = part('queues')
  const { messages_in: into, messages_out: out, errors } = part('totals')
  const streams = Object.values(part('streams')).reduce<number>((sum, count) => sum + numberOf(count), 0)
  const rows = [
    [
      'node',
      `${toText(node['node'])}, version ${toText(node['version'])}, ${toText(node['engine'])} engine, up ${span(numberOf(node['uptime_seconds']))}`,
    ],
    ['messages', `${numberOf(into)} in, ${numberOf(out)} out, ${numberOf(errors)} errors since the start`],
    ['queues', `${numberOf(waiting)} waiting, ${numberOf(delayed)} delayed, ${numberOf(inFlight)} in flight`],
    ['store', `${(numberOf(part('store')['bytes']) / 1_048_576).toFixed(1)} MiB`],
    ['agents', `${numberOf(part('agents')['registered'])} registered`],
    ['streams', `${streams} open`],
    ...objectsOf(snapshot['deepest_queues']).map((queue) => [
      'deepest queue',
      `${toText(queue['name'])}: ${numberOf(queue['waiting'])} waiting`,
    ]),
  ]
  const style = styles(io, io.stdout)
  for (const [name = '', value = ''] of rows) {
    await io.stdout.write(`${style('bold', name.padEnd(13))}  ${shown(value, io.stdout)}\n`)
  }
  return EXIT.OK
}

function cell(value: unknown, output: CommandCall['io']['stdout']): string | number {
  return typeof value === 'number' ? value : shown(toText(value), output)
}

function span(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`
}
