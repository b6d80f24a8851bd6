import type { AgentReply } from '@signalbox/client'
import { SignalboxError } from '@signalbox/client'

import { wordText } from './body.ts'
import type { CommandCall } from './command.ts'
import { connectClient } from './connection.ts'
import type { ExitCode } from './errors.ts'
import { EXIT } from './errors.ts'
import { failureOf } from './failure.ts'
import { toText } from './json.ts'
import { CheckList, shown, table } from './output.ts'

/** `signalbox agents ls`: lists the registered agents. */
export async function agentsListCommand(call: CommandCall): Promise<ExitCode> {
  const { line, io } = call
  const skillTags = line.list('tags')
  await using client = await connectClient(call)
  const cards = await client.agents.list(skillTags.length === 0 ? {} : { skillTags })
  if (line.has('json')) {
    for (const card of cards) await io.stdout.write(`${JSON.stringify(card)}\n`)
  } else {
    const rows = cards.map((card) =>
      [card['agent_id'], card['name'], card['url'], card['last_seen']].map((cell) => shown(toText(cell), io.stdout)),
    )
    for (const row of table(rows)) await io.stdout.write(`${row}\n`)
  }
  return cards.length === 0 ? EXIT.NOTHING : EXIT.OK
}

/** The states of a task whose work was not done. */
const NEGATIVE = new Set(['failed', 'rejected', 'canceled'])

/** `signalbox agents call`: sends a text to an agent, and prints its reply. */
export async function agentsCallCommand(call: CommandCall): Promise<ExitCode> {
  const { line, io } = call
  const options = {
    timeout: line.time('timeout'),
    contextId: line.value('context-id'),
    taskId: line.value('task-id'),
  }
  const text = await wordText(call, 1)
  await using client = await connectClient(call)
  const agent = client.agents(line.word(0))
  let last: AgentReply | undefined
  for await (const reply of line.has('stream') ? agent.stream(text, options) : [await agent.send(text, options)]) {
    last = reply
    if (line.has('json')) await io.stdout.write(`${JSON.stringify(reply.raw)}\n`)
    else if (reply.text !== '') await io.stdout.write(`${shown(reply.text, io.stdout)}\n`)
  }
  const state = last?.state
  if (state === undefined || state === 'completed') return EXIT.OK
  if (!line.has('json')) {
    await io.stderr.write(`signalbox agents call: the task is ${state}; --task-id ${last?.taskId ?? ''} continues it\n`)
  }
  return NEGATIVE.has(state) ? EXIT.FAILED : EXIT.OK
}

/** The time that the agent may take to answer, in ms. */
const ANSWER_MS = 10_000

/** Codes of calls that did not reach the agent, or that it did not answer as an agent does. */
const SILENT = new Set([
  'AGENT_UNREACHABLE',
  'AGENT_TIMEOUT',
  'INVALID_AGENT_RESPONSE',
  'RESPONSE_TOO_LARGE',
  'UNREACHABLE',
  'TIMEOUT',
])

/** `signalbox agents check`: checks the registration, the last heartbeat, and whether the agent answers. */
export async function agentsCheckCommand(call: CommandCall): Promise<ExitCode> {
  const id = call.line.word(0)
  const checks = new CheckList(call)
  await using client = await connectClient(call)
  const agent = client.agents(id)
  let card: Readonly<Record<string, unknown>>
  try {
    card = await agent.card()
  } catch (error) {
    if (!(error instanceof SignalboxError) || error.status !== 404) throw error
    const detail = `no agent is registered as ${id}; agents ls lists those that are`
    await checks.add({ name: 'registered', state: 'failed', detail, exit: EXIT.NOTHING })
    return checks.exit
  }
  await checks.add({ name: 'registered', state: 'ok', detail: `${toText(card['name'])} at ${toText(card['url'])}` })
  const seen = Date.parse(toText(card['last_seen']))
  const seconds = Math.max(0, Math.round((Date.now() - seen) / 1000))
  await checks.add({ name: 'heartbeat', state: 'ok', detail: `the last one was ${seconds} s ago` })
  // A task that no agent has: the agent answers that it does not know it, and does nothing.
  try {
    await agent.call('GetTask', { id: `signalbox-check-${crypto.randomUUID()}` }, { timeout: ANSWER_MS })
    await checks.add({ name: 'answers', state: 'ok', detail: 'the agent answers' })
  } catch (error) {
    const failure = failureOf(error)
    if (failure === undefined || failure.exit === EXIT.REFUSED) throw error
    const silent = SILENT.has(failure.code)
    const exit = failure.code === 'AGENT_TIMEOUT' ? EXIT.NOTHING : EXIT.FAILED
    const detail = silent ? `${failure.code}: ${failure.message}` : 'the agent answers'
    await checks.add({ name: 'answers', state: silent ? 'failed' : 'ok', detail, exit })
  }
  return checks.exit
}
