import type { EventMethods, EventMethodsEnvironment } from './event-methods.ts'

type CreateMethods = (environment: EventMethodsEnvironment) => EventMethods

/** Creates the value of the option `events`. */
let createMcpEvents: (createMethods: CreateMethods) => McpEvents

/** Creates the methods of events for one endpoint. */
let eventMethodsOf: (events: McpEvents, environment: EventMethodsEnvironment) => EventMethods

/**
 * The extension Events, which `mcpEvents` of the entry `./events` returns. The endpoint gets the
 * methods from this value, so an endpoint without events does not load them.
 */
export class McpEvents {
  readonly #createMethods: CreateMethods

  private constructor(createMethods: CreateMethods) {
    this.#createMethods = createMethods
  }

  static {
    createMcpEvents = (createMethods) => new McpEvents(createMethods)
    eventMethodsOf = (events, environment) => events.#createMethods(environment)
  }
}

export { createMcpEvents, eventMethodsOf }
