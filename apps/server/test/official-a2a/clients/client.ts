import type { Content } from '../agents/script.ts'

/** A message to an agent, and how it is to be sent. */
export interface Outgoing {
  readonly parts: readonly Content[]
  readonly taskId?: string
  readonly contextId?: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly extensions?: readonly string[]
  readonly referenceTaskIds?: readonly string[]
  /** Does not wait until the task is completed. */
  readonly immediately?: boolean
  readonly historyLength?: number
  readonly push?: PushConfig
}

/** Where an agent posts news of a task. */
export interface PushConfig {
  readonly id: string
  readonly url: string
  readonly token?: string
  readonly authentication?: { readonly scheme: string; readonly credentials: string }
}

/** The id of a task and the result that has it, as plain JSON. */
export interface Result {
  readonly taskId: string
  readonly view: unknown
}

/**
 * A client of an official SDK. Its results are what the SDK gives its user, as plain JSON in the terms of the SDK's own version
 * of the protocol; its errors are the SDK's own.
 */
export interface OfficialClient {
  send: (message: Outgoing) => Promise<Result>
  stream: (message: Outgoing, signal?: AbortSignal) => AsyncIterable<Result>
  get: (taskId: string, historyLength?: number) => Promise<Result>
  list: (contextId: string) => Promise<unknown>
  cancel: (taskId: string) => Promise<Result>
  resubscribe: (taskId: string, signal?: AbortSignal) => AsyncIterable<Result>
  setPush: (taskId: string, config: PushConfig) => Promise<unknown>
  getPush: (taskId: string, configId: string) => Promise<unknown>
  listPush: (taskId: string) => Promise<unknown>
  deletePush: (taskId: string, configId: string) => Promise<unknown>
  /** Names of the extended card's skills, or of the card's if the agent has no other. */
  skills: () => Promise<readonly string[]>
}

export function userMessageId(): string {
  return crypto.randomUUID()
}
