import { compileArguments, JSON_RPC_CODES, JsonRpcError, problemsText } from '@signalbox/http-kit'
import type { ArgumentProblem, ArgumentRule } from '@signalbox/http-kit'
import type { Static, TObject } from 'typebox'

import { brokerFailure } from './broker-failures.ts'
import type { TaskHandling, Tool, ToolAnnotations, ToolContext, ToolNeed, ToolOutcome } from './tool.ts'

interface ToolSource<Input extends TObject> {
  readonly name: string
  readonly title: string
  /** A description for a model: the purpose of the tool, when to use another tool, and the result. */
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
  /** @default none */
  readonly onTask?: TaskHandling
  run(args: Static<Input>, context: ToolContext): Promise<ToolOutcome>
}

/**
 * Makes a tool from its parts. One schema gives the type, the check and the documentation; Broker errors become
 * results.
 */
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
    onTask,
  } = source
  const check = compileArguments({
    whose: 'tool',
    input,
    rule: source.rule,
    refused: (problems) => invalidArguments(name, problems),
  })
  // Clients also check the structured content of a refusal, which has the problems and no other member.
  const { required: _required, ...outputSchema } = output
  return {
    definition: { name, title, description, inputSchema: { ...input }, outputSchema, annotations },
    needs,
    ownTimeout,
    onDisconnect,
    ...(onTask === undefined ? {} : { onTask }),
    async call(args, context) {
      // Not awaited here: the frame would keep the arguments in memory while the tool runs.
      return source
        .run(check(args === undefined ? {} : args), context)
        .catch((error: unknown) => brokerFailure(name, error))
    },
  }
}

/** Returns the JSON-RPC error for invalid arguments; `data.problems` lists all of them. */
function invalidArguments(tool: string, problems: readonly ArgumentProblem[]): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid arguments for ${tool}: ${problemsText(problems)}`, {
    data: { problems },
  })
}
