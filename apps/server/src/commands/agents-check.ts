import { SignalboxError } from '@signalbox/client'

import { CheckList } from './checks.ts'
import type { CommandCall } from './command.ts'
import { connectClient } from './connection.ts'
import { failureOf } from './failure.ts'
import type { ExitCode } from './exit-codes.ts'
import { EXIT } from './exit-codes.ts'
import { textOf } from './json.ts'

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
  await checks.add({ name: 'registered', state: 'ok', detail: `${textOf(card['name'])} at ${textOf(card['url'])}` })
  const seen = Date.parse(textOf(card['last_seen']))
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
