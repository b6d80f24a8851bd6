import { createBroker } from '@signalbox/broker-core'
import { brokerTaskStore } from '@signalbox/connector-mcp'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { serveHttp } from '@signalbox/testkit/loopback'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { McpEndpoint } from '../../packages/connector-mcp/src/handler.ts'
import { resolveMcpOptions } from '../../packages/connector-mcp/src/options.ts'
import { FIXTURE_TOOLS, INPUT_TOOLS, TASK_TOOLS } from './tools.ts'

/** An endpoint at `url`, until it is disposed of. */
export interface Host extends AsyncDisposable {
  readonly url: string
}

/** Starts the handler of the connector with the suite's tools instead of the broker's. */
export async function startFixtureHost(): Promise<Host> {
  await using opened = new AsyncDisposableStack()
  const folder = opened.use(await TemporaryFolder.create('conformance-store'))
  const engine = opened.adopt(await openEmbeddedEngine({ path: folder.path }), (open) => open.close())
  const { broker, system } = createBroker(engine)
  const tools = new Map([...FIXTURE_TOOLS, ...INPUT_TOOLS, ...TASK_TOOLS].map((tool) => [tool.definition.name, tool]))
  const tasks = { store: brokerTaskStore(system, { shared: false }), afterMs: 50 }
  const endpoint = new McpEndpoint(broker, resolveMcpOptions({ tasks }), tools)
  opened.defer(() => endpoint.close(0))
  const { url } = opened.use(await serveHttp((request, response) => endpoint.handle(request, response, undefined)))
  const resources = opened.move()
  return { url: `${url}/mcp`, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}
