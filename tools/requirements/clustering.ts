import { section } from './requirement.ts'

export const CLUSTERING = section(
  'CL',
  'docs/decisions/0011-nats-engine.md',
  [
    'channels of every type are the same on every node, also on one that comes later',
    'counters, gauges and subscribers are those of all nodes, and purge spares what any node leases',
    'a lease is settled at any node, once, and outlives the node that granted it',
    'a receipt that no node of this broker wrote, or another client’s, settles nothing',
    'while the servers are away or frozen, calls fail with ENGINE_UNAVAILABLE after a bounded wait, and health says so',
    'waits, subscriptions and leases go on by themselves when the servers are back',
    'nothing acknowledged is lost when a server crashes, and nothing is stored twice that was accepted once',
    'a node that starts while the servers are away says so, waits if it may, and is ready when they come',
    'user and password, credentials files, TLS with an own authority, and several addresses are taken',
    'on three servers with three replicas the same holds, one of them down or not, and of writers at once one is first',
    'every surface works at any node: each request of a conversation may reach another one',
    'an agent that registers at one node is served at every node, and gone at every node when it goes or falls silent',
    'a subscriber’s answer to a command or query counts at every node',
    'a node that dies with a call or a stream costs its callers seconds, and they are told',
    'streams across nodes keep their flow control: a slow reader holds its agent back, and nothing is lost',
    'while nodes and servers die and freeze, a majority left, nothing acknowledged is lost, events stores keep their order, and every call and stream ends',
    'what newer servers offer is used where they offer it, and declared; older ones are sent nothing of it',
    'a node whose clock is more than 5 s off that of the servers is not ready, and removes nothing as expired',
    'what no node wrote is passed over and reported once, and fails no other channel, no list and no statistics',
    'what a queue takes fits its dead-letter queue too',
  ],
  'nats-server',
)
