import type { AgentReply } from '@signalbox/client'

import { wordText } from './body.ts'
import type { CommandCall } from './command.ts'
import { connectClient } from './connection.ts'
import type { ExitCode } from './exit-codes.ts'
import { EXIT } from './exit-codes.ts'
import { textOf } from './json.ts'
import { shown, table } from './style.ts'

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
      [card['agent_id'], card['name'], card['url'], card['last_seen']].map((cell) => shown(textOf(cell), io.stdout)),
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
  const timeout = line.time('timeout')
  const contextId = line.value('context-id')
  const taskId = line.value('task-id')
  const options = {
    ...(timeout === undefined ? {} : { timeout }),
    ...(contextId === undefined ? {} : { contextId }),
    ...(taskId === undefined ? {} : { taskId }),
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
