import { setTimeout as pause } from 'node:timers/promises'

import type { AgentCard } from '@a2a-js/sdk'
import { Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from '@a2a-js/sdk'
import { ContentTypeNotSupportedError } from '@a2a-js/sdk/errors'
import type { AgentExecutor, ExecutionEventBus, RequestContext, ServerCallContext } from '@a2a-js/sdk/server'
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server'
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express'

import type { Application } from './express.ts'
import { Holds } from './holds.ts'
import type { Content, State, Step } from './script.ts'
import { script, UNWANTED } from './script.ts'

function part(content: Content): object {
  if ('text' in content) return { text: content.text }
  if ('data' in content) return { data: content.data }
  const { name: filename, mediaType } = content
  return 'bytes' in content ? { raw: content.bytes, filename, mediaType } : { url: content.uri, filename, mediaType }
}

const state = (name: State): string => `TASK_STATE_${name.toUpperCase().replace('-', '_')}`

/** Executes the scripts in terms of A2A 1.0. */
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
    const ids = { taskId, contextId }
    const says = (parts: readonly unknown[]) => ({
      ...ids,
      messageId: crypto.randomUUID(),
      role: 'ROLE_AGENT',
      parts,
    })
    const status = (name: State, text?: string) => ({
      state: state(name),
      timestamp: new Date().toISOString(),
      ...(text !== undefined && { message: says([{ text }]) }),
    })
    const publishStatus = (name: State, text?: string) =>
      bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ ...ids, status: status(name, text) })))
    switch (step.step) {
      case 'message':
        bus.publish(AgentEvent.message(Message.fromJSON({ ...says(step.parts.map(part)), taskId: undefined })))
        return
      case 'echo': {
        const { metadata, extensions, parts } = userMessage
        const echo = Message.fromJSON({ ...says([]), taskId: undefined, metadata, extensions })
        bus.publish(AgentEvent.message({ ...echo, parts }))
        return
      }
      case 'task': {
        const history = [...(task?.history ?? [userMessage])]
        const artifacts = [...(task?.artifacts ?? [])]
        const created = Task.fromJSON({ id: taskId, contextId, status: status(step.state) })
        bus.publish(AgentEvent.task({ ...created, history, artifacts }))
        return
      }
      case 'status':
        publishStatus(step.state, step.says)
        return
      case 'artifact': {
        const { id, parts, append, last } = step
        const artifact = { artifactId: id, name: `${id}.txt`, parts: parts.map(part) }
        const update = TaskArtifactUpdateEvent.fromJSON({ ...ids, artifact, append, lastChunk: last })
        bus.publish(AgentEvent.artifactUpdate(update))
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
  return parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('')
}

/** Refuses one content type before it executes anything. */
class PickyHandler extends DefaultRequestHandler {
  override sendMessage(params: Parameters<DefaultRequestHandler['sendMessage']>[0], context: ServerCallContext) {
    refuseUnwanted(params.message)
    return super.sendMessage(params, context)
  }

  override async *sendMessageStream(
    params: Parameters<DefaultRequestHandler['sendMessage']>[0],
    context: ServerCallContext,
  ) {
    refuseUnwanted(params.message)
    yield* super.sendMessageStream(params, context)
  }
}

function refuseUnwanted(message: Message | undefined): void {
  if (message !== undefined && textOf(message) === UNWANTED) throw new ContentTypeNotSupportedError('no such content')
}

export interface Agent10Options {
  /** Answers requests of A2A 0.3 too, with the compatibility layer of the SDK. */
  readonly speaks03?: boolean
  /** Streams, has an extended card and keeps configurations of push notifications. */
  readonly capable?: boolean
}

/** Adds an agent on the SDK for A2A 1.0 to an application, at `path` of the origin. */
export function addAgent10(
  app: Application,
  origin: string,
  path: string,
  { speaks03 = false, capable = true }: Agent10Options = {},
): Holds {
  const face = { url: `${origin}${path}`, protocolBinding: 'JSONRPC', tenant: '' }
  const card: AgentCard = {
    name: `Agent ${path}`,
    description: 'Follows scripts',
    supportedInterfaces: [
      { ...face, protocolVersion: '1.0' },
      { ...face, url: `${face.url}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      ...(speaks03 ? [{ ...face, protocolVersion: '0.3' }] : []),
    ],
    provider: undefined,
    version: '1.2.3',
    capabilities: { streaming: capable, pushNotifications: capable, extendedAgentCard: capable, extensions: [] },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [skill('play', 'Play')],
    signatures: [],
  }
  const executor = new Executor()
  const extended = async (): Promise<AgentCard> => ({ ...card, skills: [...card.skills, skill('secret', 'Secret')] })
  const requestHandler = new PickyHandler(
    card,
    new InMemoryTaskStore(),
    executor,
    undefined,
    undefined,
    undefined,
    extended,
  )
  const legacyCompat = { enabled: speaks03 }
  app.use(`${path}/.well-known/agent-card.json`, agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }))
  const userBuilder = UserBuilder.noAuthentication
  app.use(`${path}/rest`, restHandler({ requestHandler, userBuilder }))
  app.use(path, jsonRpcHandler({ requestHandler, userBuilder, legacyCompat }))
  return executor.holds
}

function skill(id: string, name: string): AgentCard['skills'][number] {
  return {
    id,
    name,
    description: name,
    tags: ['test'],
    examples: [],
    inputModes: [],
    outputModes: [],
    securityRequirements: [],
  }
}
