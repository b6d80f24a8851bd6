import { setTimeout as pause } from 'node:timers/promises'

import type { AgentCard, Message, MessageSendParams, Part, Task, TaskStatus } from 'a2a-js-sdk-v03'
import type { AgentExecutor, ExecutionEventBus, RequestContext, ServerCallContext } from 'a2a-js-sdk-v03/server'
import { A2AError, DefaultRequestHandler, InMemoryTaskStore } from 'a2a-js-sdk-v03/server'
import { agentCardHandler, jsonRpcHandler, UserBuilder } from 'a2a-js-sdk-v03/server/express'

import type { Application } from './express.ts'
import { Holds } from './holds.ts'
import type { Content, State, Step } from './script.ts'
import { script, UNWANTED } from './script.ts'

function part(content: Content): Part {
  if ('text' in content) return { kind: 'text', text: content.text }
  if ('data' in content) return { kind: 'data', data: content.data }
  const { name, mediaType: mimeType } = content
  if ('bytes' in content) return { kind: 'file', file: { bytes: content.bytes, name, mimeType } }
  return { kind: 'file', file: { uri: content.uri, name, mimeType } }
}

/** Executes the scripts in terms of A2A 0.3. */
class Executor implements AgentExecutor {
  readonly holds = new Holds()

  execute = async (context: RequestContext, bus: ExecutionEventBus): Promise<void> => {
    const text = textOf(context.userMessage)
    for (const step of script(text, { isFollowUp: context.task !== undefined })) {
      if (step.step === 'hold' && (await this.holds.wait(context.taskId)) === 'canceled') {
        await this.#do({ step: 'status', state: 'canceled', says: 'stopped' }, context, bus)
        break
      }
      await this.#do(step, context, bus)
    }
    bus.finished()
  }

  cancelTask = async (taskId: string): Promise<void> => this.holds.cancel(taskId)

  async #do(
    step: Step,
    { taskId, contextId, userMessage, task }: RequestContext,
    bus: ExecutionEventBus,
  ): Promise<void> {
    const says = (parts: Part[]): Message => ({
      kind: 'message',
      contextId,
      messageId: crypto.randomUUID(),
      role: 'agent',
      parts,
    })
    const status = (state: State, text?: string): TaskStatus => ({
      state,
      timestamp: new Date().toISOString(),
      ...(text !== undefined && { message: { ...says([{ kind: 'text', text }]), taskId } }),
    })
    const publishStatus = (state: State, text?: string) => {
      const final = state !== 'submitted' && state !== 'working'
      bus.publish({ kind: 'status-update', taskId, contextId, status: status(state, text), final })
    }
    switch (step.step) {
      case 'message':
        bus.publish(says(step.parts.map(part)))
        return
      case 'echo': {
        const { metadata, extensions, parts } = userMessage
        bus.publish({ ...says(parts), ...(metadata && { metadata }), ...(extensions && { extensions }) })
        return
      }
      case 'task': {
        const history = task?.history ?? [userMessage]
        const created: Task = { kind: 'task', id: taskId, contextId, status: status(step.state), history }
        bus.publish(task?.artifacts === undefined ? created : { ...created, artifacts: task.artifacts })
        return
      }
      case 'status':
        publishStatus(step.state, step.says)
        return
      case 'artifact': {
        const { id, parts, append, last: lastChunk } = step
        const artifact = { artifactId: id, name: `${id}.txt`, parts: parts.map(part) }
        bus.publish({ kind: 'artifact-update', taskId, contextId, artifact, append, lastChunk })
        return
      }
      case 'pause':
        await pause(step.ms)
        return
      case 'hold':
        return
      case 'throw':
        throw new Error(step.reason)
      // no default
    }
  }
}

function textOf({ parts }: Message): string {
  return parts.map((each) => (each.kind === 'text' ? each.text : '')).join('')
}

/** Refuses one content type before it executes anything. */
class PickyHandler extends DefaultRequestHandler {
  override sendMessage(params: MessageSendParams, context?: ServerCallContext) {
    refuseUnwanted(params)
    return super.sendMessage(params, context)
  }

  override async *sendMessageStream(params: MessageSendParams, context?: ServerCallContext) {
    refuseUnwanted(params)
    yield* super.sendMessageStream(params, context)
  }
}

function refuseUnwanted({ message }: MessageSendParams): void {
  if (textOf(message) === UNWANTED) throw new A2AError(-32005, 'no such content')
}

/** Adds an agent on the SDK for A2A 0.3 to an application, at `path` of the origin. */
export function addAgent03(app: Application, origin: string, path: string): Holds {
  const card: AgentCard = {
    name: `Agent ${path}`,
    description: 'Follows scripts',
    protocolVersion: '0.3.0',
    version: '1.2.3',
    url: `${origin}${path}`,
    preferredTransport: 'JSONRPC',
    capabilities: { streaming: true, pushNotifications: true },
    supportsAuthenticatedExtendedCard: true,
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'play', name: 'Play', description: 'Play', tags: ['test'] }],
  }
  const secret = { id: 'secret', name: 'Secret', description: 'Secret', tags: ['test'] }
  const executor = new Executor()
  const extended = async (): Promise<AgentCard> => ({ ...card, skills: [...card.skills, secret] })
  const requestHandler = new PickyHandler(
    card,
    new InMemoryTaskStore(),
    executor,
    undefined,
    undefined,
    undefined,
    extended,
  )
  app.use(`${path}/.well-known/agent-card.json`, agentCardHandler({ agentCardProvider: requestHandler }))
  app.use(path, jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }))
  return executor.holds
}
