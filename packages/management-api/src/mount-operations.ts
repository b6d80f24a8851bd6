import type { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'

import type { Settlements } from '@signalbox/http-kit'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import type { OperatorAdmission } from './access/operator-admission.ts'
import type { ManagementEnvironment } from './operation.ts'
import type { ManagementServices } from './ports.ts'
import { ACTION_NAMES, ACTION_ROLES, READING_PATHS, READING_ROLE } from './route-table.ts'

export type ActionRequest = FastifyRequest<{ Body: Buffer | null | undefined }>

/** The parts of the listener that all operations use. */
export interface ListenerParts {
  readonly admission: OperatorAdmission
  readonly environment: ManagementEnvironment
  readonly settlements: Settlements
  readonly running: RunningActions
  readonly maxWaitMs: number
  /** Reports a failure that no operator gets. */
  readonly failed: (error: unknown) => void
  /** @throws ManagementError NOT_READY */
  readonly services: () => ManagementServices
}

/** Loads the modules that answer requests, at the first request: a start and its probes do not need them. */
export const requestHandlers = () => import('./request-handlers.ts')

/** Adds the routes that read, and `POST /api/actions/{action}`, one route for each action. */
export function mountOperations(app: FastifyInstance, parts: ListenerParts): void {
  const { admission } = parts
  for (const paths of READING_PATHS) {
    for (const path of paths) {
      app.get(path, { onRequest: admission.hook(READING_ROLE, path) }, async (request, reply) => {
        const services = parts.services()
        const { serveRoute } = await requestHandlers()
        return serveRoute(paths[0], request, reply, services, parts)
      })
    }
  }
  for (const name of ACTION_NAMES) {
    const onRequest = admission.hook(ACTION_ROLES[name], name)
    app.post(`/api/actions/${name}`, { onRequest }, async (request: ActionRequest, reply) => {
      const { serveAction } = await requestHandlers()
      return serveAction(name, request, reply, parts)
    })
  }
}

/** Actions in progress: each ends when its client disconnects, and all end when the server shuts down. */
export class RunningActions {
  readonly #running = new Map<ServerResponse, AbortController>()
  #ended = false

  /** @returns a signal that is aborted when the client has disconnected or the server shuts down */
  begin(response: ServerResponse): AbortSignal {
    const controller = new AbortController()
    this.#running.set(response, controller)
    response.once('close', () => controller.abort())
    // The client can have disconnected while the actions were loaded.
    if (this.#ended || response.destroyed) controller.abort()
    return controller.signal
  }

  finish(response: ServerResponse): void {
    this.#running.delete(response)
  }

  endAll(): void {
    this.#ended = true
    for (const controller of this.#running.values()) controller.abort()
  }
}
