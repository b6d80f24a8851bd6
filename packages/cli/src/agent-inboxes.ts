import type { CommandCall } from './command.ts'
import { connectManagement } from './connection.ts'
import type { ExitCode } from './errors.ts'
import { EXIT } from './errors.ts'
import { objectsOf, toText } from './json.ts'
import { printResult, shown, styles, table } from './output.ts'

/** The most entries of a page. */
const PAGE = 1000

const INBOX_FIELDS = ['agent_id', 'waiting', 'in_flight', 'oldest_seconds']
const TASK_FIELDS = ['task_id', 'phase', 'caller', 'attempt', 'created_at', 'expires_at']

/** `signalbox agents inbox`: lists the inboxes, or the tasks of one. */
export async function agentsInboxCommand(call: CommandCall): Promise<ExitCode> {
  const { line, io } = call
  const agent = line.word(0)
  if (agent === '' && line.has('all')) throw line.invalid('--all', 'given', 'AGENT before it')
  const limit = line.whole('max', 1, PAGE) ?? PAGE
  const api = await connectManagement(call)
  const page =
    agent === ''
      ? await api.get('/api/agent_inboxes', { limit })
      : await api.get('/api/agent_tasks', { agent_id: agent, all: String(line.has('all')), limit })
  const items = objectsOf(page['items'])
  const fields = agent === '' ? INBOX_FIELDS : TASK_FIELDS
  if (line.has('json')) {
    for (const item of items) await io.stdout.write(`${JSON.stringify(item)}\n`)
  } else if (items.length > 0) {
    const style = styles(io, io.stdout)
    const cell = (value: unknown) => (typeof value === 'number' ? value : shown(toText(value), io.stdout))
    const rows = items.map((item) => fields.map((field) => cell(item[field])))
    for (const [i, row] of table([fields.map((field) => field.replaceAll('_', ' ')), ...rows]).entries()) {
      await io.stdout.write(`${i === 0 ? style('bold', row) : row}\n`)
    }
  }
  if (page['next_cursor'] !== null) await io.stderr.write('signalbox agents inbox: there are more; use --max\n')
  return items.length === 0 ? EXIT.NOTHING : EXIT.OK
}

/** `signalbox agents cancel`: cancels a task of an inbox. */
export async function agentsCancelCommand(call: CommandCall): Promise<void> {
  const { line } = call
  const api = await connectManagement(call)
  const task = await api.act('cancel_agent_task', { agent_id: line.word(0), task_id: line.word(1) })
  const phase = toText(task['phase'])
  const text =
    phase === 'done' ? `${line.word(1)} is over` : `${line.word(1)} is ${phase}; ${line.word(0)} was asked to cancel it`
  await printResult(call, task, text)
}
