import { JsonRpcError } from '@signalbox/http-kit';
/** The members of a client's capabilities that this server uses. */
export interface ClientCapabilities {
    /** `true` if the client understands tasks. */
    readonly tasks: boolean;
    /** `true` if the client shows forms to its user. */
    readonly forms: boolean;
    /** `true` if the client declares the extension of events. */
    readonly events: boolean;
}
/** Returns the capabilities that a request declares. */
export declare function readCapabilities(capabilities: unknown): ClientCapabilities;
/** Returns the error for a request that only a client with tasks may send. */
export declare function tasksRequired(method: string): JsonRpcError;
/**
 * Returns the members of the result of `server/discover`, as JSON text without the braces.
 * @param instructions A description of the server for models
 * @param offered.tasks `true` if calls can become tasks
 * @param offered.events `true` if clients can subscribe to events
 */
export declare function discovery(instructions: string, offered: {
    readonly tasks: boolean;
    readonly events: boolean;
}): string;
//# sourceMappingURL=capabilities.d.ts.map