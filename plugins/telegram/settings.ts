import { defineSettings } from '../../config/declaration.ts'

export default defineSettings({ formerNames: ['chat-a'] })
