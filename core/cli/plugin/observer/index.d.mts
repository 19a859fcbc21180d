/** See index.mjs. */
import type { Server } from '@hapi/hapi'

export function observed(): readonly Server[]
