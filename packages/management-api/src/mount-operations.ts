import { unreadRoute } from '@signalbox/http-kit/fastify'
import type { FastifyInstance } from 'fastify'

import type { OperatorRoute, OperatorSurface } from './access/operator-surface.ts'
import type { ManagementEnvironment } from './operation.ts'
import type { ManagementServices } from './ports.ts'
import { ACTION_NAMES, ACTION_ROLES, READING_PATHS, READING_ROLE } from './route-table.ts'

/** The parts of the listener that all operations use. */
export interface ListenerParts {
  readonly surface: OperatorSurface
  readonly environment: ManagementEnvironment
  readonly maxBodyBytes: number
  readonly maxWaitMs: number
  /** @throws ManagementError NOT_READY */
  readonly services: () => ManagementServices
}

/** Loads the modules that answer requests, at the first request: a start and its probes do not need them. */
export const requestHandlers = () => import('./request-handlers.ts')

/** Adds the routes that read, and `POST /api/actions/{action}`, one route for each action. */
export function mountOperations(app: FastifyInstance, parts: ListenerParts): void {
  const { maxBodyBytes, services, surface } = parts
  for (const paths of READING_PATHS) {
    for (const path of paths) {
      mountReading(app, surface, path, async (call) => {
        const ready = services()
        const { serveRoute } = await requestHandlers()
        await serveRoute(paths[0], call, ready, parts)
      })
    }
  }
  for (const name of ACTION_NAMES) {
    const route: OperatorRoute = {
      role: ACTION_ROLES[name],
      action: name,
      maxBodyBytes,
      async run(call) {
        const { serveAction } = await requestHandlers()
        await serveAction(name, call, parts)
      },
    }
    const url = `/api/actions/${name}`
    app.route({ ...unreadRoute(url, (request, reply) => surface.serve(request, reply, route)), method: 'POST' })
  }
}

/** Adds a GET route that every role may read. */
export function mountReading(
  app: FastifyInstance,
  surface: OperatorSurface,
  path: string,
  run: OperatorRoute['run'],
): void {
  const route: OperatorRoute = { role: READING_ROLE, action: path, run }
  app.route({ ...unreadRoute(path, (request, reply) => surface.serve(request, reply, route)), method: 'GET' })
}
