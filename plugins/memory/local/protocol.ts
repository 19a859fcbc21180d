/** The messages between the main thread and the encoder's. */

export interface EncodeRequest {
	id: number
	texts: string[]
}

export type EncodeReply = { id: number; vectors: Float32Array[] } | { id: number; error: string }
