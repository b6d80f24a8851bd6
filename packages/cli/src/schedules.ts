import { wordText } from './body.ts'
import type { CommandCall } from './command.ts'
import { connectManagement } from './connection.ts'
import type { ExitCode } from './errors.ts'
import { CommandError, EXIT } from './errors.ts'
import type { JsonObject } from './json.ts'
import { isObject, numberOf, objectsOf, toText } from './json.ts'
import { printResult, shown, styles, table } from './output.ts'

/** The most entries of a page. */
const PAGE = 1000

/** `signalbox schedules ls`: lists the schedules with their results. */
export async function schedulesListCommand(call: CommandCall): Promise<ExitCode> {
  const { line, io } = call
  const limit = line.whole('max', 1, PAGE) ?? PAGE
  const api = await connectManagement(call)
  const page = await api.get('/api/schedules', { limit })
  const items = objectsOf(page['items'])
  if (line.has('json')) {
    for (const item of items) await io.stdout.write(`${JSON.stringify(item)}\n`)
  } else if (items.length > 0) {
    const style = styles(io, io.stdout)
    const rows = items.map((item) =>
      row(item).map((cell) => (typeof cell === 'number' ? cell : shown(cell, io.stdout))),
    )
    for (const [i, text] of table([
      ['id', 'times', 'target', 'next', 'last', 'missed', 'failure'],
      ...rows,
    ]).entries()) {
      await io.stdout.write(`${i === 0 ? style('bold', text) : text}\n`)
    }
  }
  if (page['next_cursor'] !== null) await io.stderr.write('signalbox schedules ls: there are more; use --max\n')
  return items.length === 0 ? EXIT.NOTHING : EXIT.OK
}

function row(item: JsonObject): readonly (string | number)[] {
  const { id, paused, next_times: next, last_time: last, missed, failure } = item
  const target = isObject(item['target']) ? item['target'] : {}
  const first: unknown = Array.isArray(next) ? next[0] : undefined
  return [
    toText(id),
    timesText(item),
    `${toText(target['type'])} ${toText(target['channel'])}`,
    paused === true ? 'paused' : first === undefined ? '-' : toText(first),
    toText(last) || '-',
    numberOf(missed),
    isObject(failure) ? toText(failure['reason']) : '',
  ]
}

function timesText({ cron, every_seconds: every, at, time_zone: zone }: JsonObject): string {
  if (cron !== undefined) return `${toText(cron)} ${toText(zone)}`
  return every === undefined ? `at ${toText(at)}` : `every ${numberOf(every)} s`
}

/** The channel types by the option that names a channel. */
const TARGETS = { queue: 'queues', log: 'events_store', events: 'events' } as const

/** `signalbox schedules set`: writes a schedule. */
export async function schedulesSetCommand(call: CommandCall): Promise<void> {
  const { line } = call
  const targets = Object.entries(TARGETS).flatMap(([option, type]) => {
    const channel = line.value(option)
    return channel === undefined ? [] : [{ type, channel }]
  })
  const [target] = targets
  if (target === undefined || targets.length > 1) {
    throw new CommandError('CONFIG_INVALID', [
      `schedules set: ${targets.length} of --queue, --log and --events are given; allowed is one of them`,
    ])
  }
  const schedule = {
    id: line.word(0),
    cron: line.value('cron'),
    every_seconds: seconds(call, 'every'),
    at: line.value('at'),
    time_zone: line.value('time-zone'),
    target,
    message: { body: await wordText(call, 1) },
    catchup_window_seconds: seconds(call, 'catch-up'),
    paused: line.has('paused') || undefined,
    revision: line.whole('revision', 0, Number.MAX_SAFE_INTEGER),
  }
  const api = await connectManagement(call)
  const written = await api.act('set_schedule', schedule)
  const next = Array.isArray(written['next_times']) ? toText(written['next_times'][0]) : ''
  await printResult(call, written, `${line.word(0)}: ${next === '' ? 'paused' : `next at ${next}`}`)
}

function seconds({ line }: CommandCall, option: string): number | undefined {
  const time = line.time(option)
  if (time === undefined || time % 1000 === 0) return time === undefined ? undefined : time / 1000
  throw line.invalid(`--${option}`, line.option(option), 'a time of whole seconds, such as 30s or 1h')
}

/** `signalbox schedules rm`: removes a schedule. */
export function schedulesRemoveCommand(call: CommandCall): Promise<void> {
  return act(call, 'remove_schedule', () => 'removed')
}

/** `signalbox schedules trigger`: sends the message of a schedule now. */
export function schedulesTriggerCommand(call: CommandCall): Promise<void> {
  return act(call, 'trigger_schedule', ({ message_id: id }) => `sent, id ${toText(id)}`)
}

/** `signalbox schedules pause`: stops a schedule. */
export function schedulesPauseCommand(call: CommandCall): Promise<void> {
  return act(call, 'pause_schedule', () => 'paused')
}

/** `signalbox schedules resume`: continues a paused schedule. */
export function schedulesResumeCommand(call: CommandCall): Promise<void> {
  return act(call, 'resume_schedule', () => 'resumed')
}

async function act(call: CommandCall, action: string, textOf: (data: JsonObject) => string): Promise<void> {
  const id = call.line.word(0)
  const api = await connectManagement(call)
  const data = await api.act(action, { id })
  await printResult(call, data, `${id}: ${textOf(data)}`)
}
