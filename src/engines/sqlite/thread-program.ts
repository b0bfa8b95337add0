/** The program of the store's thread, in one text. The build replaces this file; the sources run `thread.ts` as it is. */
export const THREAD_PROGRAM: string | undefined = undefined;
