import { section } from './requirement.ts'

export const CLUSTERING = section(
  'CL',
  'docs/decisions/0011-nats-engine.md',
  [
    'channels of every type are the same on every node, also on one that joins later',
    'counters, gauges and subscribers cover all nodes, and purge keeps messages that any node leases',
    'a lease is settled at any node, once, and outlives the node that granted it',
    'a receipt that no node of this broker wrote, or another client’s, settles nothing',
    'while the servers are unavailable or frozen, calls fail with ENGINE_UNAVAILABLE after a bounded wait, and health reports it',
    'waits, subscriptions and leases continue automatically when the servers return',
    'no acknowledged message is lost when a server crashes, and none is stored twice',
    'a node that starts while the servers are unavailable reports it, waits if it may, and is ready when they return',
    'user and password, credentials files, TLS with a private authority, and several addresses are supported',
    'three servers with three replicas keep the same contract, also with one down, and exactly one of concurrent writers is first',
    'every surface works at any node: each request of a conversation may reach another one',
    'an agent that registers at one node is served at every node, and removed at every node when it deregisters or expires',
    'a subscriber’s answer to a command or query counts at every node',
    'when a node with a call or a stream dies, its callers get an error within seconds',
    'streams across nodes keep their flow control: a slow reader slows its agent down, and nothing is lost',
    'while nodes and servers die and freeze and a majority remains, no acknowledged message is lost, events stores keep their order, and every call and stream ends',
    'features of newer servers are used and declared; older servers get no such request',
    'a node whose clock differs by more than 5 s from the servers is not ready, and removes no message as expired',
    'data that no node wrote is skipped and reported once, and fails no other channel, no list and no statistics',
    'every message that a queue accepts fits its dead-letter queue too',
  ],
  'nats-server',
)
