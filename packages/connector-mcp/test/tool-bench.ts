import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Broker, BrokerHandle, Engine } from '@signalbox/broker-core'
import { ANONYMOUS, createBroker } from '@signalbox/broker-core'
import type { AgentDirectory } from '@signalbox/broker-core/ports'
import type { EmbeddedEngineOptions } from '@signalbox/engine-embedded'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { JsonRpcError } from '@signalbox/http-kit'
import { TextParts } from '@signalbox/http-kit/internal'
import { Compile } from 'typebox/compile'
import { expect } from 'vitest'

import { DEFAULT_MAX_ANSWER_BYTES } from '../src/tools/answer-size.ts'
import { createTools } from '../src/tools/index.ts'
import type { Tool, ToolContext, ToolOutcome } from '../src/tools/tool.ts'

/** The tools over a real broker on a real store, called as the protocol half calls them. */
export interface ToolBench extends AsyncDisposable {
  readonly engine: Engine
  readonly broker: Broker
  readonly system: BrokerHandle
  readonly user: BrokerHandle
  readonly tools: ReadonlyMap<string, Tool>
  /** What the tools told about their progress. */
  readonly progress: string[]
  /** Calls a tool and checks its structured content against its output schema (M10). Settles nothing. */
  call(name: string, args: unknown, signal?: AbortSignal): Promise<ParsedOutcome>
  /** As `call`, then settles as after an answer that arrived; the JSON of the text, where it is some. */
  json(name: string, args: unknown): Promise<unknown>
  /** The error that a call with wrong arguments gives; fails when it gives none. */
  refused(name: string, args: unknown): Promise<JsonRpcError>
}

/** An outcome whose text is complete, and whose structured content is no JSON text any more. */
export type ParsedOutcome = Omit<ToolOutcome, 'text' | 'structuredContent'> & {
  readonly text: string
  readonly structuredContent?: object
}

/** Small, so that tests of the limit are quick. */
const MAX_MESSAGE_BYTES = 1024 * 1024

const NEVER = new AbortController().signal

export async function openToolBench(
  agents?: (system: BrokerHandle) => Promise<AgentDirectory>,
  limits: Omit<EmbeddedEngineOptions, 'path'> = {},
  { leases = false, maxAnswerBytes = DEFAULT_MAX_ANSWER_BYTES }: { leases?: boolean; maxAnswerBytes?: number } = {},
): Promise<ToolBench> {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-tools-'))
  const engine = await openEmbeddedEngine({ path: folder, maxMessageBytes: MAX_MESSAGE_BYTES, ...limits })
  const { broker, system } = createBroker(engine)
  const user = broker.as(ANONYMOUS)
  const directory = await agents?.(system)
  const tools = createTools({ agents: directory, leases })
  const progress: string[] = []

  async function call(name: string, args: unknown, signal: AbortSignal = NEVER): Promise<ParsedOutcome> {
    const tool = toolNamed(tools, name)
    const context: ToolContext = {
      broker: user,
      maxAnswerBytes,
      signal,
      callerGone: NEVER,
      wantsProgress: true,
      allowTask: () => false,
      mayAsk: false,
      traceContext: {},
      hops: 0,
      progress: (message) => void progress.push(message),
    }
    const { structuredContent, text, ...rest } = await tool.call(args, context)
    const isJson = typeof structuredContent === 'string' || structuredContent instanceof TextParts
    const parsed: unknown = isJson ? JSON.parse(String(structuredContent)) : structuredContent
    const outcome = {
      ...rest,
      text: String(text),
      ...(typeof parsed === 'object' && parsed !== null ? { structuredContent: parsed } : {}),
    }
    expectOutput(tool, outcome)
    return outcome
  }

  return {
    engine,
    broker,
    system,
    user,
    tools,
    progress,
    call,
    async json(name, args) {
      const { text, isError, settlement } = await call(name, args)
      expect(isError, text).toBe(false)
      await settlement?.commit()
      return JSON.parse(text)
    },
    async refused(name, args) {
      const error: unknown = await call(name, args).then(
        ({ text }) => expect.fail(`${name} accepted the arguments and answered ${text.slice(0, 200)}`),
        (error: unknown) => error,
      )
      expect(error).toBeInstanceOf(JsonRpcError)
      return error as JsonRpcError
    },
    async [Symbol.asyncDispose]() {
      await engine.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export function toolNamed(tools: ReadonlyMap<string, Tool>, name: string): Tool {
  const tool = tools.get(name)
  if (!tool) expect.fail(`there is no tool ${name}`)
  return tool
}

const outputs = new Map<Tool, ReturnType<typeof Compile>>()

/** Success has structured content that fits the output schema; an error has none, for clients would refuse it. */
function expectOutput(tool: Tool, { isError, structuredContent, text }: ToolOutcome): void {
  expect(typeof text).toBe('string')
  if (isError) {
    expect(structuredContent).toBeUndefined()
    return
  }
  const check = outputs.get(tool) ?? Compile(tool.definition.outputSchema)
  outputs.set(tool, check)
  expect(structuredContent).toBeTypeOf('object')
  expect(check.Errors(structuredContent)).toEqual([])
}

export function problemsOf(error: JsonRpcError): readonly { argument: string; given?: string; allowed: string }[] {
  return (error.data as { problems: { argument: string; given?: string; allowed: string }[] }).problems
}
