import { hostname } from 'node:os'

/** This process among the gateways of a cluster, for people. */
export const ownName = `${hostname()} (process ${process.pid})`
