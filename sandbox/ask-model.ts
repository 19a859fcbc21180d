/** How the loop asks a model. */
import type { Attachment, NewEvent } from '../core/protocol.ts'
import type { ModelReply, ModelRequest } from './models/provider.ts'

export interface ModelIo {
	/** Aborts when the run is to be stopped, or its wall time is over. */
	signal: AbortSignal
	/** The number of this model answer in the run, from 1. */
	step: number
	emit(event: NewEvent): void
	stream(content: string): void
	/** The bytes of an attachment; null if there are none. Never rejects. */
	blob(attachment: Attachment): Promise<Uint8Array | null>
}

/** Asks the models of an order until one has answered. Never rejects; see models/provider.ts. */
export type AskModel = (request: ModelRequest, io: ModelIo) => Promise<ModelReply>
