import { compileArguments, JSON_RPC_CODES, JsonRpcError, problemsText } from '@signalbox/http-kit'
import type { ArgumentProblem, ArgumentRule } from '@signalbox/http-kit'
import type { Static, TObject } from 'typebox'

import { brokerFailure } from './broker-failures.ts'
import type { Tool, ToolAnnotations, ToolContext, ToolNeed, ToolOutcome } from './tool.ts'

interface ToolSource<Input extends TObject> {
  readonly name: string
  readonly title: string
  /** For a model: what the tool is for, when another one is the right one, and what comes back. */
  readonly description: string
  readonly input: Input
  readonly output: TObject
  readonly annotations: ToolAnnotations
  readonly needs: ToolNeed
  /** @default false */
  readonly ownTimeout?: boolean
  /** @default 'run-on' */
  readonly onDisconnect?: Tool['onDisconnect']
  readonly rule?: ArgumentRule<Static<Input>>
  run(args: Static<Input>, context: ToolContext): Promise<ToolOutcome>
}

/** Makes a tool of its parts: one schema is its type, its check and its documentation; Broker errors become results. */
export function defineTool<Input extends TObject>(source: ToolSource<Input>): Tool {
  const {
    name,
    title,
    description,
    input,
    output,
    annotations,
    needs,
    ownTimeout = false,
    onDisconnect = 'run-on',
  } = source
  const check = compileArguments({
    whose: 'tool',
    input,
    rule: source.rule,
    refused: (problems) => invalidArguments(name, problems),
  })
  return {
    definition: { name, title, description, inputSchema: { ...input }, outputSchema: { ...output }, annotations },
    needs,
    ownTimeout,
    onDisconnect,
    async call(args, context) {
      // Not awaited in here: the frame would keep the arguments for as long as the tool takes.
      return source
        .run(check(args === undefined ? {} : args), context)
        .catch((error: unknown) => brokerFailure(name, error))
    },
  }
}

/** The JSON-RPC error for arguments that are not what they must be; `data.problems` lists all of them. */
function invalidArguments(tool: string, problems: readonly ArgumentProblem[]): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid arguments for ${tool}: ${problemsText(problems)}`, {
    data: { problems },
  })
}
