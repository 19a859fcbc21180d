import type { AnswerFile } from '../../runs/contract.ts'
import type { Abilities } from '../adapter.ts'
import { texts } from './texts.ts'

/** Why a channel with these abilities does not send a file; undefined if it does. */
export function reasonNotToSend({ size }: Pick<AnswerFile, 'size'>, can: Abilities | undefined): string | undefined {
	if (!can?.files) return texts.noFiles
	return size > can.files.max_bytes ? texts.fileTooLarge(can.files.max_bytes) : undefined
}
