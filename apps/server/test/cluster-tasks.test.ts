import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, onTestFinished, test } from 'vitest'

import { listed, register, startAgent } from './support/agent.ts'
import { startCli } from './support/cli.ts'
import { PATIENT, serveNode, startNats } from './support/nodes.ts'
import { answerTask, getTask, startTask, taskRequest, untilTask } from './support/tasks.ts'

const ASKING = { kind: 'task', id: 't1', contextId: 'c1', status: { state: 'input-required' } }

describe.skipIf(NATS_SERVER === undefined)('tasks of a node that is killed', () => {
  test(
    'M19, M20 - the other node reads its results, fails the call that ran, and continues the others',
    { timeout: 90_000 },
    async () => {
      const nats = await startNats()
      const config = { connectors: { mcp: { tasks: { afterMs: 100 } } } }
      const { http, broker } = await serveNode(nats, config)
      const env = { ENGINE: 'nats', NATS_SERVERS: nats.url, LOG_LEVEL: 'warn', CONNECTORSMCP_TASKS_AFTER_MS: '100' }
      const cli = startCli({ env })
      const killed = await cli.ready()
      const toldQuick = Promise.withResolvers<void>()
      const agent = await startAgent(async ({ params }, response) => {
        const { parts, taskId } = params['message'] as { parts: { text: string }[]; taskId?: string }
        const answer = (result: unknown): void => {
          response.setHeader('content-type', 'application/json')
          response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
        }
        if (taskId !== undefined) answer({ kind: 'message', parts: [] })
        else if (parts[0]?.text === 'ask') answer(ASKING)
        else if (parts[0]?.text === 'quick') {
          await toldQuick.promise
          answer({ kind: 'message', parts: [] })
        }
      })
      await register(killed.http, { agent_id: 'clerk', name: 'Clerk', url: agent.url })
      await expect.poll(() => listed(http.url), PATIENT).toEqual(['clerk'])
      const send = (message: string) => startTask(killed.http, 'agent_send', { agent_id: 'clerk', message })
      // A task of the node that stays lives on.
      const commands = broker.as({ clientId: 'responder' }).commands
      const subscription = await commands.subscribe('do', {}, () => new Promise(() => {}))
      onTestFinished(() => subscription.close())
      const own = await startTask(http.url, 'command_send', { channel: 'do', body: 'x', timeout_seconds: 60 })
      const quick = await send('quick')
      // The caller has its task; now the agent answers.
      toldQuick.resolve()
      const [ask, slow] = [await send('ask'), await send('slow')]
      // Each is readable at the other node as soon as its caller has it.
      expect(await getTask(http.url, slow)).toMatchObject({ status: 'working' })
      await untilTask(http.url, quick, 'completed')
      const asked = await untilTask(http.url, ask, 'input_required')
      cli.child.kill('SIGKILL')
      await cli.exited

      await answerTask(http.url, asked, 'four')
      await untilTask(http.url, ask, 'completed')
      expect(await getTask(http.url, quick)).toMatchObject({ status: 'completed' })
      const failed = await untilTask(http.url, slow, 'failed')
      expect(failed.error).toMatchObject({ code: -32603, message: expect.stringContaining('may have run') })
      expect(await getTask(http.url, own)).toMatchObject({ status: 'working' })
      await taskRequest(http.url, 'tasks/cancel', { taskId: own })
      expect(await getTask(http.url, own)).toMatchObject({ status: 'cancelled' })
    },
  )
})
