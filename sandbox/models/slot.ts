import { toWire } from '../../core/errors.ts'
import type { ModelIo } from '../ask-model.ts'
import type { ModelOrder } from '../order.ts'
import { failed } from './provider.ts'
import type { ModelCode, ModelReply } from './provider.ts'

export type Slot = ReturnType<typeof slotFor>

/** The slot of one call, for a provider that limits concurrent calls. */
export function slotFor({ needs_slot, provider, model }: ModelOrder, { slot }: Pick<ModelIo, 'slot'>) {
	let leave: (() => void) | undefined
	return {
		/** Waits for a slot, unless the call has one or needs none. Resolves to a failure if it cannot get one. Never rejects. */
		async take(): Promise<ModelReply | undefined> {
			if (!needs_slot || !slot || leave) return undefined
			try {
				leave = await slot({ provider, model })
				return undefined
			} catch (error) {
				const { code, message } = toWire(error)
				return failed(code as ModelCode, message)
			}
		},
		leave(): void {
			leave?.()
			leave = undefined
		},
	}
}
