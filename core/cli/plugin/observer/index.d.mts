/** See index.mjs. */
import type { Server } from '@hapi/hapi'
import type { AnyExtension } from '../../../host/instance.ts'

export function observed(): readonly Server[]

/** What plugins add at an extension point of the newest gateway. */
export function observedExtensions(point: string): readonly AnyExtension[]
