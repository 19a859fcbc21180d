import { toWire } from '../../core/errors.ts'
import type { ModelIo } from '../ask-model.ts'
import type { ModelOrder } from '../order.ts'
import { failed } from './provider.ts'
import type { ModelCode, ModelReply } from './provider.ts'

/** The slot of one call, for a provider that limits concurrent calls. */
export interface Slot {
	/** Waits for a slot, unless the call has one or needs none. Resolves to a failure if it cannot get one. Never rejects. */
	take(): Promise<ModelReply | undefined>
	leave(): void
}

export function slotFor({ needs_slot, provider, model }: ModelOrder, { slot }: Pick<ModelIo, 'slot'>): Slot {
	let leave: (() => void) | undefined
	return {
		async take() {
			if (!needs_slot || !slot || leave) return undefined
			try {
				leave = await slot({ provider, model })
				return undefined
			} catch (error) {
				const { code, message } = toWire(error)
				return failed(code as ModelCode, message)
			}
		},
		leave() {
			leave?.()
			leave = undefined
		},
	}
}
