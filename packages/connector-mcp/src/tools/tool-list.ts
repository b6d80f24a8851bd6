import type { BrokerHandle } from '@signalbox/broker-core'

import type { Tool } from './tool.ts'

/** The tools as `tools/list` shows them. */
export class ToolList {
  /** The JSON text of each tool. */
  readonly #texts: ReadonlyMap<Tool, string>

  constructor(tools: Iterable<Tool>) {
    this.#texts = new Map([...tools].map((tool) => [tool, JSON.stringify(tool.definition)]))
  }

  /** Returns the tools that the policy allows the caller on at least one channel, as a JSON array. */
  textFor(broker: BrokerHandle): string {
    const shown: string[] = []
    for (const [{ needs }, text] of this.#texts) {
      if (needs.patterns.some((pattern) => broker.mayPermit(needs.action, pattern))) shown.push(text)
    }
    return `[${shown.join(',')}]`
  }
}
