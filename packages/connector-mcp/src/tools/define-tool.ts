import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { argumentsForm, defineOperation, problemsText } from '@signalbox/http-kit/internal'
import type { OperationSource } from '@signalbox/http-kit/internal'
import type { Static, TObject } from 'typebox'

import { brokerFailure } from './broker-failures.ts'
import { failure } from './results.ts'
import type { TaskHandling, Tool, ToolAnnotations, ToolContext, ToolNeed, ToolOutcome } from './tool.ts'

interface ToolSource<Input extends TObject> extends OperationSource<Input, TObject> {
  readonly title: string
  readonly annotations: ToolAnnotations
  readonly needs: ToolNeed
  /** @default false */
  readonly ownTimeout?: boolean
  /** @default 'run-on' */
  readonly onDisconnect?: Tool['onDisconnect']
  /** @default none */
  readonly onTask?: TaskHandling
  run(args: Static<Input>, context: ToolContext): Promise<ToolOutcome>
}

/** The arguments of tools. The JSON-RPC error for invalid ones has all their problems in `data.problems`. */
const ARGUMENTS = argumentsForm('tool', (name, problems) => {
  const text = `invalid arguments for ${name}: ${problemsText(problems)}`
  return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, text, { data: { problems } })
})

/** Makes a tool from its declaration. Broker errors become results. */
export function defineTool<Input extends TObject>(source: ToolSource<Input>): Tool {
  const operation = defineOperation(ARGUMENTS, source)
  const { name, summary: description, input, output } = operation
  const { title, annotations, needs, ownTimeout = false, onDisconnect = 'run-on', onTask } = source
  // Clients also check the structured content of a refusal, which has the problems and no other member.
  const { required: _required, ...outputSchema } = output
  return {
    definition: { name, title, description, inputSchema: { ...input }, outputSchema, annotations },
    needs,
    ownTimeout,
    onDisconnect,
    onTask,
    call(args, context) {
      // No async function: its frame would keep the arguments in memory while the tool runs.
      return source
        .run(operation.read(args === undefined ? {} : args), context)
        .catch((error: unknown) => brokerFailure(name, error))
    },
  }
}

/** Reads without changing anything. */
export const READS: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
}

/** Adds a message; a repeated call adds another one. */
export const ADDS: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
}

/** Removes the messages that it returns. */
export const REMOVES: ToolAnnotations = { ...ADDS, destructiveHint: true }

/** Changes the state of messages without removing any; a repeated call has no further effect. */
export const CHANGES: ToolAnnotations = { ...ADDS, idempotentHint: true }

/** Asks a subscriber or an agent for an answer. */
export const ASKS: ToolAnnotations = { ...ADDS, openWorldHint: true }

/** Makes a subscriber or an agent act, possibly with destructive effects. */
export const ACTS: ToolAnnotations = { ...ASKS, destructiveHint: true }

/**
 * Interval of progress notifications, in ms. Clients that extend their time-out with each notification wait longer
 * than this.
 */
const PROGRESS_MS = 5_000

/** Waits, and reports progress to a client that asked for it: at once, and then every 5 s. */
export function withProgress<T>(context: ToolContext, awaited: string, wait: () => Promise<T>): Promise<T> {
  return context.wantsProgress ? waitAndReport(context, awaited, wait) : wait()
}

async function waitAndReport<T>(context: ToolContext, awaited: string, wait: () => Promise<T>): Promise<T> {
  context.progress(`waiting for ${awaited}`)
  const timer = setInterval(() => context.progress(`still waiting for ${awaited}`), PROGRESS_MS)
  timer.unref()
  try {
    return await wait()
  } finally {
    clearInterval(timer)
  }
}

/**
 * Returns the outcome of a request that was ended by a cancellation or a shutdown.
 * @throws the error itself if it is another one
 */
export function cancelledOutcome(error: unknown, { signal }: ToolContext, awaited: string): ToolOutcome {
  if (!signal.aborted || error !== signal.reason) throw error
  return failure(
    `CANCELLED: The call was cancelled, or the server is shutting down, before ${awaited} arrived. A subscriber may have received the request: check that before you repeat it.`,
  )
}
