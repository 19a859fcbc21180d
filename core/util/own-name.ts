import { hostname } from 'node:os'

/** The name of this process among the gateways of a cluster, for people. */
export const ownName = `${hostname()} (process ${process.pid})`
