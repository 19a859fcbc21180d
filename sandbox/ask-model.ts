/** How the loop asks a model. */
import type { WireError } from '../core/errors.ts'
import type { Attachment, ModelId, ModelUsage, Reservation, SentRequest, WorkerEvent } from '../core/protocol.ts'
import type { ModelReply, ModelRequest } from './models/provider.ts'

export interface ModelIo {
	/** Aborts when the run is to be stopped, or its wall time is over. */
	signal: AbortSignal
	/** The number of this model answer in the run, from 1. */
	step: number
	emit(event: WorkerEvent): void
	stream(content: string): void
	/** The bytes of an attachment; null if there are none. Never rejects. */
	blob(attachment: Attachment): Promise<Uint8Array | null>
	/** Called with the usage of each model answer, even if the answer cannot be used: all usage is counted here. */
	spent(call: ModelUsage): void
	/** Called before each model call if a daily limit applies. Resolves to null, or to the reason why the call must not be made. */
	reserve?(call: Reservation): Promise<WireError | null>
	/**
	 * Waits for a slot of a provider that limits concurrent calls. Resolves to a function that releases the slot. Rejects if the run is
	 * stopped meanwhile.
	 */
	slot?(call: ModelId): Promise<() => void>
	/** Called with each request as it was sent, if requests are kept. */
	sent?(request: SentRequest): void
}

/** Asks the models of an order until one has answered. Never rejects; see models/provider.ts. */
export type AskModel = (request: ModelRequest, io: ModelIo) => Promise<ModelReply>
